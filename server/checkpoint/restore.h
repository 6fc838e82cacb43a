// Loads a checkpoint, which may have been written by any number of servers.
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

// What the reader checks before it returns any value. In both cases it also checks the checksum of
// each record when it reads the record.
enum class CheckpointVerify {
  // The SHA-256 of every file.
  kDigests,
  // Only sizes and headers. For a checkpoint that FindNewestCheckpoint has just verified.
  kHeaders,
};

// The updates and contributions that were applied to a range of elements.
struct RangeProgress {
  uint64_t version = 0;
  // For each rank, the clock of its next contribution to the range.
  std::vector<uint64_t> clocks;
  // The number of updates that the optimizer state includes.
  uint64_t updates = 0;
};

// Thread-safe. Errors are DATA_LOSS and name the file and the byte, unless a comment says
// otherwise.
class CheckpointReader {
 public:
  // Opens a checkpoint. Checks that the shard files belong together and that their blocks make up
  // the whole model.
  static absl::StatusOr<CheckpointReader> Open(
      const std::string& folder, CheckpointVerify verify = CheckpointVerify::kDigests);

  const std::string& folder() const { return folder_; }
  const v1::CheckpointManifest& manifest() const { return manifest_; }
  // The keys of the values: "weights" and the names of the slots. All blocks have the same keys.
  const std::vector<std::string>& keys() const { return keys_; }

  // Reads the elements `range` of the flat vector into `out`, which must have range.count elements.
  // Returns NOT_FOUND for an unknown key, and INVALID_ARGUMENT for a range outside of the model.
  absl::Status ReadRange(std::string_view key, ElementRange range, std::span<float> out) const;
  absl::StatusOr<FloatBuffer> ReadAll(std::string_view key) const;

  // Returns the progress from which a block with this range continues. The range may cover saved
  // blocks with different progress. This happens only outside of sync mode, and only if the model
  // is now cut into other blocks. The range then gets the largest version, so that no reader sees a
  // version go back, the fewest updates, and for each rank the smallest clock. No acknowledged
  // contribution is lost: if only some of the saved blocks include a contribution, its worker sends
  // it again for the whole range. With the same blocks, and always in sync mode, each contribution
  // is applied exactly once.
  absl::StatusOr<RangeProgress> Progress(ElementRange range) const;

  // Returns the path of the file with a rank's state between clocks, or an empty string if the rank
  // has no such state.
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
  // The saved blocks, ordered by offset. They cover [0, total) exactly once.
  std::vector<Extent> extents_;
  std::vector<std::string> keys_;
};

}  // namespace leeway
