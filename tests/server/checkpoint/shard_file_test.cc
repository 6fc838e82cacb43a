#include "server/checkpoint/shard_file.h"

#include "common/crc32.h"
#include "common/files/sha256.h"
#include "server/checkpoint/encoding.h"
#include "tests/server/checkpoint/sample.h"
#include "tests/temp_folder.h"

namespace leeway::shard_file {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("a shard file holds its header and values, and what its writer said of it is true") {
  TempFolder folder;
  const auto saved = WriteSampleShard(folder.path(), {}, 1);
  REQUIRE(saved.ok());
  const std::string content = *ReadFile(folder / saved->file(), 1 << 20);
  REQUIRE(saved->file() == "shard-1-of-2.lwck");
  REQUIRE(saved->bytes() == content.size());
  REQUIRE(saved->sha256() == HexSha256(content));

  const auto file = ShardFile::Open(folder / saved->file());
  REQUIRE(file.ok());
  REQUIRE(file->header().job_id() == kJob);
  REQUIRE(file->header().index() == 1);
  REQUIRE(file->header().blocks_size() == 3);
  for (const v1::BlockRecord& block : file->header().blocks()) {
    for (const std::string key : {"weights", "momentum"}) {
      std::vector<float> values(block.count());
      REQUIRE(file->ReadValues(block, key, values).ok());
      REQUIRE(values == SampleValues(key, {block.offset(), block.count()}, 5));
    }
  }
  std::vector<float> values(16);
  REQUIRE(absl::IsNotFound(file->ReadValues(file->header().blocks(0), "v", values)));
}

TEST_CASE("positions are right where the header's length makes them one digit longer") {
  TempFolder folder;
  // The first position passes 127, the largest value that protobuf encodes in one byte.
  for (size_t length = 20; length < 100; ++length) {
    const Sample sample{
        .total = 4, .servers = 1, .ranks = 1, .keys = {kWeightsKey, std::string(length, 'k')}};
    const auto saved = WriteSampleShard(folder.path(), sample, 0);
    REQUIRE(saved.ok());
    const auto file = ShardFile::Open(folder / saved->file());
    REQUIRE(file.ok());
    const auto& values = file->header().blocks(0).values();
    REQUIRE(values[0].position() == 24 + file->header().ByteSizeLong());
    REQUIRE(values[1].position() == values[0].position() + 16);
  }
}

TEST_CASE("a server without a block writes a shard file that loads") {
  TempFolder folder;
  REQUIRE(WriteShardFile(folder / "empty", {.job_id = kJob, .index = 1, .servers = 2}).ok());
  const auto file = ShardFile::Open(folder / "empty");
  REQUIRE(file.ok());
  REQUIRE(file->header().blocks().empty());
}

TEST_CASE("a block without values, or with values of another size, is not written") {
  TempFolder folder;
  const std::vector<float> three(3);
  ShardContents contents;
  contents.blocks.push_back({{0, 4}, 1, {}, {{kWeightsKey, three}}});
  REQUIRE(absl::IsInvalidArgument(WriteShardFile(folder / "a", contents).status()));
  contents.blocks[0].values.clear();
  REQUIRE(absl::IsInvalidArgument(WriteShardFile(folder / "a", contents).status()));
  REQUIRE(absl::IsNotFound(ShardFile::Open(folder / "a").status()));
}

// Reads everything; OK only if no error was found.
absl::Status ReadEverything(const std::string& path) {
  const auto file = ShardFile::Open(path);
  if (!file.ok()) return file.status();
  for (const v1::BlockRecord& block : file->header().blocks()) {
    for (const v1::ValuesRecord& record : block.values()) {
      std::vector<float> values(block.count());
      if (absl::Status read = file->ReadValues(block, record.key(), values); !read.ok())
        return read;
    }
  }
  return absl::OkStatus();
}

TEST_CASE("without any manifest, every flipped bit and every truncation of a shard file is found") {
  TempFolder folder;
  const Sample sample{.total = 20, .servers = 1};
  REQUIRE(WriteSampleShard(folder.path(), sample, 0).ok());
  const std::string path = folder / ShardFileName(0, 1), good = *ReadFile(path, 1 << 20);
  REQUIRE(ReadEverything(path).ok());
  const auto refused = [&](const std::string& content) {
    Overwrite(path, content);
    const absl::Status status = ReadEverything(path);
    return absl::IsDataLoss(status) && status.message().find(path) != absl::string_view::npos &&
           status.message().find("byte ") != absl::string_view::npos;
  };
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      CAPTURE(i, bit);
      REQUIRE(refused(bad));
    }
    CAPTURE(i);
    REQUIRE(refused(good.substr(0, i)));
  }
  REQUIRE(refused(good + '\0'));
  REQUIRE(refused(good + good));
}

// Makes a file with correct checksums around any header, written from the format's description.
std::string Crafted(const std::string& header, size_t value_bytes) {
  std::string file = "LWSHARD1";
  AppendNumber<uint64_t>(file, header.size());
  AppendNumber<uint32_t>(file, Crc32(BytesOf(header)));
  AppendNumber<uint32_t>(file, Crc32(BytesOf(file)));
  file += header + std::string(value_bytes, '\0');
  AppendNumber<uint64_t>(file, file.size() + 16);
  return file + "LWSHEND1";
}

// The same with a header of one block; the block takes 100 bytes whatever the header says.
std::string Crafted(v1::ShardFileHeader header, size_t value_bytes) {
  std::string bytes = header.SerializeAsString();
  // An unknown field fills the header to its length.
  REQUIRE(bytes.size() < 98);
  const auto filler = static_cast<char>(98 - bytes.size());
  bytes += std::string("\x7a") + filler + std::string(98 - bytes.size(), 'x');
  return Crafted(bytes, value_bytes);
}

TEST_CASE("a header with a right checksum and impossible content is refused") {
  TempFolder folder;
  v1::ShardFileHeader good;
  good.add_blocks()->set_count(4);
  good.mutable_blocks(0)->add_values()->set_key("weights");
  good.mutable_blocks(0)->mutable_values(0)->set_position(124);
  const auto open = [&](const std::string& content) {
    Overwrite(folder / "a", content);
    return ShardFile::Open(folder / "a").status();
  };
  REQUIRE(open(Crafted(good, 16)).ok());
  REQUIRE(absl::IsDataLoss(open(Crafted(good, 12))));
  REQUIRE(absl::IsDataLoss(open(Crafted(good, 20))));
  REQUIRE(absl::IsDataLoss(open(Crafted(std::string(40, '\xff'), 16))));

  v1::ShardFileHeader before = good, none = good, huge = good, wrapped = good, twice = good;
  before.mutable_blocks(0)->mutable_values(0)->set_position(120);
  none.mutable_blocks(0)->set_count(0);
  huge.mutable_blocks(0)->set_count((uint64_t{1} << 62) + 4);
  wrapped.mutable_blocks(0)->set_offset(~uint64_t{0} - 2);
  // Nothing in the file would limit this block count.
  v1::ShardFileHeader hollow = good;
  hollow.add_blocks()->set_count(uint64_t{1} << 60);
  hollow.mutable_blocks(1)->set_offset(4);
  *twice.mutable_blocks(0)->add_values() = twice.blocks(0).values(0);
  twice.mutable_blocks(0)->mutable_values(1)->set_position(140);
  for (const auto& bad : {before, none, huge, wrapped, hollow}) {
    REQUIRE(absl::IsDataLoss(open(Crafted(bad, 16))));
  }
  REQUIRE(absl::IsDataLoss(open(Crafted(twice, 32))));
}

}  // namespace
}  // namespace leeway::shard_file
