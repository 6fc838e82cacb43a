#include "server/checkpoint/shard_file.h"

#include <climits>
#include <limits>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/crc32.h"
#include "common/files/files.h"
#include "common/status.h"
#include "server/checkpoint/encoding.h"
#include "server/checkpoint/saved_file.h"

namespace leeway {
namespace {

constexpr std::string_view kShardMagic = "LWSHARD1";
constexpr std::string_view kShardEndMagic = "LWSHEND1";
constexpr uint64_t kShardPrefixBytes = 24;
constexpr uint64_t kShardFooterBytes = 16;
// The maximum size of a header, which is protobuf's own limit.
constexpr uint64_t kMaxHeaderBytes = INT_MAX;

absl::Status DamagedShard(const std::string& path, uint64_t position, std::string_view what) {
  return absl::DataLossError(absl::StrCat("shard file '", path, "', byte ", position, ": ",
                                          absl::string_view(what.data(), what.size())));
}

absl::Status CheckContents(const std::string& path, const ShardContents& contents) {
  for (const BlockContents& block : contents.blocks) {
    if (block.values.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("writing shard file '", path,
                                                     "': the block at element ", block.range.offset,
                                                     " has no values"));
    }
    for (const auto& [key, values] : block.values) {
      if (values.size() == block.range.count && block.range.count > 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "writing shard file '", path, "': the block at element ", block.range.offset, " has ",
          block.range.count, " elements, but ", values.size(), " values of ", key));
    }
  }
  return absl::OkStatus();
}

// Sets the positions of the values. The positions depend on the length of the header, and that
// length depends on the positions. So the function repeats until both agree.
void PlaceValues(v1::ShardFileHeader& header) {
  for (size_t size = 0; size != header.ByteSizeLong();) {
    size = header.ByteSizeLong();
    uint64_t position = kShardPrefixBytes + size;
    for (v1::BlockRecord& block : *header.mutable_blocks()) {
      for (v1::ValuesRecord& record : *block.mutable_values()) {
        record.set_position(position);
        position += block.count() * sizeof(float);
      }
    }
  }
}

v1::ShardFileHeader HeaderOf(const ShardContents& contents) {
  v1::ShardFileHeader header;
  header.set_job_id(contents.job_id);
  header.set_clock(contents.clock);
  header.set_index(contents.index);
  header.set_servers(contents.servers);
  for (const BlockContents& block : contents.blocks) {
    v1::BlockRecord& record = *header.add_blocks();
    record.set_offset(block.range.offset);
    record.set_count(block.range.count);
    record.set_version(block.version);
    if (block.updates) record.set_updates(*block.updates);
    record.mutable_clocks()->Add(block.clocks.begin(), block.clocks.end());
    for (const auto& [key, values] : block.values) {
      v1::ValuesRecord& saved = *record.add_values();
      saved.set_key(key);
      saved.set_crc32(Crc32(BytesOf(values)));
    }
  }
  PlaceValues(header);
  return header;
}

std::string PrefixOf(std::string_view header) {
  std::string prefix(kShardMagic);
  AppendNumber<uint64_t>(prefix, header.size());
  AppendNumber<uint32_t>(prefix, Crc32(BytesOf(header)));
  AppendNumber<uint32_t>(prefix, Crc32(BytesOf(prefix)));
  return prefix;
}

// Reads the header. Checks its length and its CRC, which are in the prefix.
absl::StatusOr<std::string> ReadHeader(const StoredFile& file) {
  if (file.size() < kShardPrefixBytes + kShardFooterBytes) {
    return DamagedShard(file.location(), file.size(), "the file is too short for a shard file");
  }
  uint8_t prefix[kShardPrefixBytes];
  RETURN_IF_ERROR(file.ReadAt(0, prefix));
  if (std::string_view(reinterpret_cast<char*>(prefix), kShardMagic.size()) != kShardMagic) {
    return DamagedShard(file.location(), 0, "not a shard file of format 1");
  }
  if (Crc32({prefix, kShardPrefixBytes - 4}) !=
      NumberAt<uint32_t>(prefix + kShardPrefixBytes - 4)) {
    return DamagedShard(file.location(), 0, "the checksum of the prefix is wrong");
  }
  const auto length = NumberAt<uint64_t>(prefix + kShardMagic.size());
  if (length > kMaxHeaderBytes || length > file.size() - kShardPrefixBytes - kShardFooterBytes) {
    return DamagedShard(file.location(), kShardMagic.size(), "the header is longer than the file");
  }
  std::string header(length, '\0');
  RETURN_IF_ERROR(
      file.ReadAt(kShardPrefixBytes, {reinterpret_cast<uint8_t*>(header.data()), header.size()}));
  if (Crc32(BytesOf(header)) != NumberAt<uint32_t>(prefix + kShardMagic.size() + 8)) {
    return DamagedShard(file.location(), kShardPrefixBytes, "the checksum of the header is wrong");
  }
  return header;
}

absl::Status CheckFooter(const StoredFile& file) {
  const uint64_t start = file.size() - kShardFooterBytes;
  uint8_t footer[kShardFooterBytes];
  RETURN_IF_ERROR(file.ReadAt(start, footer));
  if (NumberAt<uint64_t>(footer) != file.size()) {
    return DamagedShard(file.location(), start,
                        "the length in the footer is not the length of the file");
  }
  if (std::string_view(reinterpret_cast<char*>(footer) + 8, kShardEndMagic.size()) !=
      kShardEndMagic) {
    return DamagedShard(file.location(), start + 8, "the footer is missing");
  }
  return absl::OkStatus();
}

// Checks that the records fill the file between header and footer, in order, and have possible
// ranges.
absl::Status CheckRecords(const StoredFile& file, const v1::ShardFileHeader& header,
                          uint64_t start) {
  const uint64_t end = file.size() - kShardFooterBytes;
  uint64_t position = start;
  for (const v1::BlockRecord& block : header.blocks()) {
    if (block.count() == 0 ||
        block.offset() > std::numeric_limits<uint64_t>::max() - block.count()) {
      return DamagedShard(file.location(), kShardPrefixBytes, "a block has an impossible range");
    }
    // Refuse a block without values, because nothing has checked its count, and a caller would
    // allocate memory for that count.
    if (block.values().empty())
      return DamagedShard(file.location(), kShardPrefixBytes, "a block has no values");
    std::set<std::string_view> keys;
    for (const v1::ValuesRecord& record : block.values()) {
      if (record.position() != position || block.count() > (end - position) / sizeof(float)) {
        return DamagedShard(file.location(), record.position(),
                            "the values of a block are at the wrong position");
      }
      if (!keys.insert(record.key()).second) {
        return DamagedShard(file.location(), kShardPrefixBytes, "a block has the same key twice");
      }
      position += block.count() * sizeof(float);
    }
  }
  return position == end
             ? absl::OkStatus()
             : DamagedShard(file.location(), position, "the bytes from here on belong to no block");
}

}  // namespace

absl::StatusOr<v1::SavedShard> WriteShardFile(const std::string& path,
                                              const ShardContents& contents) {
  RETURN_IF_ERROR(CheckContents(path, contents));
  const std::string header = HeaderOf(contents).SerializeAsString();
  if (header.size() > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("writing shard file '", path, "': its header has ", header.size(),
                     " bytes, which is too long; use larger blocks (servers.block_bytes)"));
  }
  const std::string prefix = PrefixOf(header);
  ASSIGN_OR_RETURN(SavedFileWriter writer, SavedFileWriter::Create(path));
  RETURN_IF_ERROR(writer.Append(BytesOf(prefix)));
  RETURN_IF_ERROR(writer.Append(BytesOf(header)));
  uint64_t length = prefix.size() + header.size() + kShardFooterBytes;
  for (const BlockContents& block : contents.blocks) {
    for (const auto& [key, values] : block.values) {
      RETURN_IF_ERROR(writer.Append(BytesOf(values)));
      length += values.size_bytes();
    }
  }
  std::string footer;
  AppendNumber<uint64_t>(footer, length);
  footer += kShardEndMagic;
  RETURN_IF_ERROR(writer.Append(BytesOf(footer)));
  return writer.Finish();
}

ShardFile::ShardFile(std::unique_ptr<StoredFile> file, v1::ShardFileHeader header)
    : file_(std::move(file)), header_(std::move(header)) {}

absl::StatusOr<ShardFile> ShardFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<StoredFile> file, OpenStored(path));
  ASSIGN_OR_RETURN(const std::string bytes, ReadHeader(*file));
  RETURN_IF_ERROR(CheckFooter(*file));
  v1::ShardFileHeader header;
  if (!header.ParseFromString(bytes)) {
    return DamagedShard(path, kShardPrefixBytes, "the header cannot be parsed");
  }
  RETURN_IF_ERROR(CheckRecords(*file, header, kShardPrefixBytes + bytes.size()));
  return ShardFile(std::move(file), std::move(header));
}

absl::Status ShardFile::ReadValues(const v1::BlockRecord& block, std::string_view key,
                                   std::span<float> out) const {
  for (const v1::ValuesRecord& record : block.values()) {
    if (record.key() != key) continue;
    const std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(out.data()), out.size_bytes());
    RETURN_IF_ERROR(file_->ReadAt(record.position(), bytes));
    if (Crc32(bytes) == record.crc32()) return absl::OkStatus();
    return DamagedShard(
        path(), record.position(),
        absl::StrCat("the checksum of the '", record.key(), "' values of the block at element ",
                     block.offset(), " is wrong"));
  }
  return absl::NotFoundError(absl::StrCat("shard file '", path(), "': the block at element ",
                                          block.offset(), " lacks its '",
                                          absl::string_view(key.data(), key.size()), "' values"));
}

}  // namespace leeway
