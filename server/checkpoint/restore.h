// Loads a checkpoint that any number of servers wrote.
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

// How much of the files is checked before any value is returned. In both cases the checksum of each
// record is checked when it is read.
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
  // The number of updates that the optimizer state has seen.
  uint64_t updates = 0;
};

// Thread-safe. Errors are DATA_LOSS and name file and byte, unless a comment says otherwise.
class CheckpointReader {
 public:
  // Also checks that the shard files belong together and that their blocks make up the whole model.
  static absl::StatusOr<CheckpointReader> Open(
      const std::string& folder, CheckpointVerify verify = CheckpointVerify::kDigests);

  const std::string& folder() const { return folder_; }
  const v1::CheckpointManifest& manifest() const { return manifest_; }
  // "weights" and the names of the slots. All blocks have the same keys.
  const std::vector<std::string>& keys() const { return keys_; }

  // Reads the elements `range` of the flat vector; out.size() is their number. NOT_FOUND for an
  // unknown key, INVALID_ARGUMENT for a range outside of the model.
  absl::Status ReadRange(std::string_view key, ElementRange range, std::span<float> out) const;
  absl::StatusOr<FloatBuffer> ReadAll(std::string_view key) const;

  // The progress from which a block with this range continues. Saved blocks in the range may
  // differ, but only without sync and only if the model is now cut into other blocks. Then the
  // range gets the largest version, so that no reader sees a version go back; the fewest updates;
  // and for each rank the smallest clock. The whole range then takes a contribution again that only
  // some of the saved blocks had. No acknowledged contribution is lost. With the same blocks, and
  // always in sync mode, each contribution is applied exactly once.
  absl::StatusOr<RangeProgress> Progress(ElementRange range) const;

  // The path of a rank's state between clocks; empty if it has none.
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
  // The saved blocks that overlap the range.
  std::span<const Extent> Overlapping(ElementRange range) const;

  std::string folder_;
  v1::CheckpointManifest manifest_;
  std::vector<ShardFile> shards_;
  // By offset. They cover [0, total) exactly once.
  std::vector<Extent> extents_;
  std::vector<std::string> keys_;
};

}  // namespace leeway
