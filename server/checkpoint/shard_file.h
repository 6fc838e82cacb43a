// A shard file contains the blocks of one shard at a cut: the weights, the slots of the update
// rule, the version and the clocks of each block. Values are addressed by element range and key, so
// any number of servers can load the file (server/checkpoint/restore.h). All numbers are
// little-endian, without padding. The bytes are:
//
//   prefix   8  magic "LWSHARD1"
//            8  length of the header
//            4  CRC-32 of the header
//            4  CRC-32 of the 20 bytes before
//   header      v1::ShardFileHeader: where each record of values is, and its CRC-32
//   values      float32; block by block, key by key, in the header's order
//   footer   8  length of the file
//            8  magic "LWSHEND1"
//
// So every byte is covered by a checksum or has only one legal value. A reader allocates no memory
// for a size that has not been checked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/blocks.h"
#include "common/storage/storage.h"
#include "leeway/v1/checkpoint.pb.h"

namespace leeway {

// The key of the weights among a block's values. The other keys are the names of the rule's slots.
inline constexpr char kWeightsKey[] = "weights";
// The key of the shadow: the values that the workers have in place of the weights, if servers
// answer with changes (server/store/reply_encoder.h).
inline constexpr char kShadowKey[] = "shadow";

// One block, as views into memory that stays unchanged while the file is written.
struct BlockContents {
  ElementRange range = {};
  uint64_t version = 0;
  // For each rank, the clock of its next contribution.
  std::vector<uint64_t> clocks = {};
  // The keys and their values. Each span has range.count floats.
  std::vector<std::pair<std::string, std::span<const float>>> values = {};
  // The number of updates, as in BlockProgress. If absent, as in files of version 0.1.0, it equals
  // the version.
  std::optional<uint64_t> updates = {};
};

struct ShardContents {
  uint64_t job_id = 0;
  uint64_t clock = 0;
  uint32_t index = 0;
  uint32_t servers = 1;
  std::vector<BlockContents> blocks = {};
};

// Writes the file into an existing folder, completely or not at all (common/storage/storage.h). The
// file is durable when the function returns. The function reads the values twice, because their
// checksums come before them in the file.
absl::StatusOr<v1::SavedShard> WriteShardFile(const std::string& path,
                                              const ShardContents& contents);

// Reads a shard file. Every error is DATA_LOSS (or the operating system's error on opening) and
// names the file and the byte. Thread-safe.
class ShardFile {
 public:
  // Checks prefix, header and footer, and that the records fill the file. The values are not
  // checked yet.
  static absl::StatusOr<ShardFile> Open(const std::string& path);

  const v1::ShardFileHeader& header() const { return header_; }
  const std::string& path() const { return file_->location(); }

  // Reads the values of a block into `out`, which must have as many floats as the block, and checks
  // their checksum. Returns NOT_FOUND if the block does not have the key. After an error the
  // contents of `out` are undefined.
  absl::Status ReadValues(const v1::BlockRecord& block, std::string_view key,
                          std::span<float> out) const;

 private:
  ShardFile(std::unique_ptr<StoredFile> file, v1::ShardFileHeader header);

  std::unique_ptr<StoredFile> file_;
  v1::ShardFileHeader header_;
};

}  // namespace leeway
