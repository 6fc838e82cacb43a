// Loading a checkpoint, whatever number of servers wrote it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/blocks.h"
#include "common/buffer.h"
#include "leeway/v1/checkpoint.pb.h"
#include "server/checkpoint/shard_file.h"

namespace leeway {

// How much of the files to read before any value is given out. Each record's checksum is checked
// when it is read, in any case.
enum class CheckpointVerify {
  // The SHA-256 of every file.
  kDigests,
  // Sizes and headers: for a checkpoint that FindNewestCheckpoint has just verified.
  kHeaders,
};

// What was applied to a range of elements.
struct RangeProgress {
  uint64_t version = 0;
  // By rank: the next clock that the range wants.
  std::vector<uint64_t> clocks;
  // That the optimizer state has seen.
  uint64_t updates = 0;
};

// Thread-safe. Errors are DATA_LOSS and name file and byte, except where something else is said.
class CheckpointReader {
 public:
  // Checks also that the shard files belong together and that their blocks make up the whole model.
  static absl::StatusOr<CheckpointReader> Open(
      const std::string& folder, CheckpointVerify verify = CheckpointVerify::kDigests);

  const std::string& folder() const { return folder_; }
  const v1::CheckpointManifest& manifest() const { return manifest_; }
  // "weights" and the slots, as every block has them.
  const std::vector<std::string>& keys() const { return keys_; }

  // Elements of `range` (out.size() of them) of the flat vector. NOT_FOUND for an unknown key,
  // INVALID_ARGUMENT for a range outside of the model.
  absl::Status ReadRange(std::string_view key, ElementRange range, std::span<float> out) const;
  absl::StatusOr<FloatBuffer> ReadAll(std::string_view key) const;

  // Where a block with this range goes on. If saved blocks differ in it (only without sync, and
  // only where the model is cut otherwise than when it was saved) it gets the largest version, so
  // that no reader sees one go back, the fewest updates, and for each rank the smallest clock: a
  // contribution that some of the saved blocks had already is then taken once more by all of the
  // range. Nothing acknowledged is lost; with the same cut, and always with sync, each is applied
  // exactly once.
  absl::StatusOr<RangeProgress> Progress(ElementRange range) const;

  // Path of what a rank kept between clocks; empty if nothing.
  std::string WorkerStatePath(uint32_t rank) const;

 private:
  // One saved block.
  struct Extent {
    ElementRange range;
    const v1::BlockRecord* record;
    size_t shard;
  };
  CheckpointReader(std::string folder, v1::CheckpointManifest manifest,
                   std::vector<ShardFile> shards);
  absl::Status OpenExtents();
  absl::Status CheckExtents() const;
  absl::Status CheckRange(ElementRange range) const;
  // The saved blocks that have elements of it.
  std::span<const Extent> Overlapping(ElementRange range) const;

  std::string folder_;
  v1::CheckpointManifest manifest_;
  std::vector<ShardFile> shards_;
  // By offset; they cover [0, total) once.
  std::vector<Extent> extents_;
  std::vector<std::string> keys_;
};

}  // namespace leeway
