// A shard file holds what one server holds at a cut: each of its blocks with weights, the update
// rule's slots, version and clocks. It is addressed by element ranges and keys, so that any number
// of servers can load it (server/checkpoint/restore.h). Its bytes, all numbers little-endian, no
// padding:
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
// So every byte is under a checksum or has one legal value, and nothing is allocated on the word of
// an unchecked one.
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

// The key of the weights among a block's values; the others are the names of the rule's slots.
inline constexpr char kWeightsKey[] = "weights";
// What the workers have instead, in jobs where servers answer changes (server/store/
// reply_encoder.h).
inline constexpr char kShadowKey[] = "shadow";

// One block, as views into memory that stays as it is while the file is written.
struct BlockContents {
  ElementRange range = {};
  uint64_t version = 0;
  // By rank: the next clock that the block wants.
  std::vector<uint64_t> clocks = {};
  // range.count floats each.
  std::vector<std::pair<std::string, std::span<const float>>> values = {};
  // As BlockProgress has them; nothing, as in 0.1.0: as many as the version says.
  std::optional<uint64_t> updates = {};
};

struct ShardContents {
  uint64_t job_id = 0;
  uint64_t clock = 0;
  uint32_t index = 0;
  uint32_t servers = 1;
  std::vector<BlockContents> blocks = {};
};

// Writes the file whole or not at all (common/storage/storage.h) into an existing folder; durable
// when it returns. Reads the values twice: for their checksums, which come before them, and to
// write them.
absl::StatusOr<v1::SavedShard> WriteShardFile(const std::string& path,
                                              const ShardContents& contents);

// Reads a shard file. Every error is DATA_LOSS (or the system's, on opening) and names file and
// byte. Thread-safe.
class ShardFile {
 public:
  // Checks prefix, header, footer and that the records fill the file; not yet the values.
  static absl::StatusOr<ShardFile> Open(const std::string& path);

  const v1::ShardFileHeader& header() const { return header_; }
  const std::string& path() const { return file_->location(); }

  // Reads the whole record of a block into `out`, of as many floats as the block has, and checks
  // it. NOT_FOUND if the block has no such key. On error what is in `out` is not to be used.
  absl::Status ReadValues(const v1::BlockRecord& block, std::string_view key,
                          std::span<float> out) const;

 private:
  ShardFile(std::unique_ptr<StoredFile> file, v1::ShardFileHeader header);

  std::unique_ptr<StoredFile> file_;
  v1::ShardFileHeader header_;
};

}  // namespace leeway
