// Shard files, worker states, and whole checkpoints of up to three shards. The input has what a
// checksum covers, and this file writes the checksums, so that the readers behind them are reached.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

#include "common/crc32.h"
#include "common/files/files.h"
#include "server/checkpoint/encoding.h"
#include "server/checkpoint/json_file.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/restore.h"
#include "server/checkpoint/shard_file.h"
#include "server/checkpoint/worker_state.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/temp_folder.h"

namespace leeway::checkpoint {
namespace {

const TempFolder& Folder() {
  static const TempFolder folder;
  return folder;
}

std::string Save(const std::string& name, std::string_view bytes) {
  const std::string path = Folder() / name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

void PromiseDataLoss(const absl::Status& status) {
  Promise(status.ok() || absl::IsDataLoss(status),
          "what cannot be read is DATA_LOSS: " + status.ToString());
}

std::string ShardImage(std::string_view header, std::string_view values) {
  std::string image = "LWSHARD1";
  AppendNumber<uint64_t>(image, header.size());
  AppendNumber<uint32_t>(image, Crc32(BytesOf(header)));
  AppendNumber<uint32_t>(image, Crc32(BytesOf(image)));
  image += header;
  image += values;
  AppendNumber<uint64_t>(image, image.size() + 16);
  return image + "LWSHEND1";
}

// Puts every record in its place and under its checksum, as far as there are values.
void Place(v1::ShardFileHeader& header, std::string_view values) {
  for (size_t size = 0; size != header.ByteSizeLong();) {
    size = header.ByteSizeLong();
    size_t at = 0;
    for (v1::BlockRecord& block : *header.mutable_blocks()) {
      for (v1::ValuesRecord& record : *block.mutable_values()) {
        const size_t bytes = std::min<uint64_t>(values.size() - at, block.count() * sizeof(float));
        record.set_position(24 + size + at);
        record.set_crc32(Crc32(BytesOf(values.substr(at, bytes))));
        at += bytes;
      }
    }
  }
}

// A header, and what it says about its values.
struct Shard {
  v1::ShardFileHeader header;
  std::string values;
};

Shard ShardOf(FuzzInput& input) {
  Shard shard;
  const std::string header = TextOf(input.Take(input.Short()));
  const uint32_t floats = input.Below(64);
  shard.header.ParsePartialFromString(header);
  for (uint32_t i = 0; i < floats; ++i) AppendNumber<float>(shard.values, i + 0.5f);
  return shard;
}

// Either the records fill the file one after the other, or the file is not read.
void PromiseValues(const ShardFile& file, std::string_view image) {
  uint64_t end = 0;
  for (const v1::BlockRecord& block : file.header().blocks()) {
    for (const v1::ValuesRecord& record : block.values()) {
      Promise(end == 0 || record.position() == end, "values follow each other");
      end = record.position() + block.count() * sizeof(float);
      Promise(end <= image.size(), "values lie in the file");
      std::vector<float> out(block.count());
      const absl::Status read = file.ReadValues(block, record.key(), out);
      PromiseDataLoss(read);
      Promise(!read.ok() || std::memcmp(out.data(), image.data() + record.position(),
                                        out.size() * sizeof(float)) == 0,
              "values are those of the file");
    }
  }
}

void ReadShard(FuzzInput& input) {
  const bool as_it_is = input.Flag(), placed = !input.Flag();
  std::string image;
  if (as_it_is) {
    image = TextOf(input.Rest());
  } else {
    const std::string header = TextOf(input.Take(input.Short()));
    std::string values = TextOf(input.Rest());
    v1::ShardFileHeader parsed;
    if (placed && parsed.ParsePartialFromString(header)) {
      Place(parsed, values);
      image = ShardImage(parsed.SerializePartialAsString(), values);
    } else {
      image = ShardImage(header, values);
    }
  }
  const auto file = ShardFile::Open(Save("shard.lwck", image));
  PromiseDataLoss(file.status());
  if (file.ok()) PromiseValues(*file, image);
}

void ReadWorkerState(FuzzInput& input) {
  const bool as_it_is = input.Flag();
  std::string image;
  std::string data;
  if (as_it_is) {
    image = TextOf(input.Rest());
  } else {
    image = "LWWORKR1" + TextOf(input.Take(20));
    image.resize(28);
    AppendNumber<uint32_t>(image, Crc32(BytesOf(image)));
    data = TextOf(input.Rest());
    image += data;
    AppendNumber<uint64_t>(image, data.size());
    AppendNumber<uint32_t>(image, Crc32(BytesOf(data)));
    image += "LWWKEND1";
  }
  const auto reader = WorkerStateReader::Open(Save("state.lwck", image));
  PromiseDataLoss(reader.status());
  Promise(as_it_is || reader.ok(), "a whole file is read");
  if (!reader.ok()) return;
  const auto read = reader->Read(0, UINT64_MAX);
  PromiseOk(read.status(), "a state that was opened can be read");
  Promise(read->size() == reader->size() && (as_it_is || *read == data), "it is what was written");
  const auto beyond = reader->Read(reader->size(), 10);
  Promise(beyond.ok() && beyond->empty(), "nothing follows the end");
}

// Reads all elements by every key, and then in parts, which must have the same values.
void PromiseOneReading(const CheckpointReader& reader, FuzzInput& input) {
  const uint64_t total = reader.manifest().schema().total();
  const ElementRange range{input.Byte() % total, 1 + input.Byte() % total};
  for (const std::string& key : reader.keys()) {
    const auto all = reader.ReadAll(key);
    PromiseDataLoss(all.status());
    if (!all.ok() || range.end() > total) continue;
    std::vector<float> part(range.count);
    PromiseOk(reader.ReadRange(key, range, part), "a part of what can be read can be read");
    Promise(std::memcmp(part.data(), all->span().data() + range.offset, range.count * 4) == 0,
            "a part reads as it does in the whole");
  }
  Promise(reader.ReadAll("no such key").status().code() == absl::StatusCode::kNotFound,
          "an unknown key is NOT_FOUND");
  const auto progress = reader.Progress(range);
  Promise(progress.ok() == (range.end() <= total), "a range of the model has its progress");
}

void ReadCheckpoint(FuzzInput& input) {
  v1::CheckpointManifest manifest;
  manifest.set_format(kCheckpointFormat);
  manifest.set_clock(7);
  const uint32_t servers = 1 + input.Below(3);
  const bool own_identity = input.Flag();
  manifest.mutable_schema()->set_total(input.Number());
  manifest.mutable_schema()->set_trained(input.Byte());
  const std::span<const uint8_t> places = input.Take(2);
  for (uint32_t i = 0; i < servers; ++i) {
    Shard shard = ShardOf(input);
    if (!own_identity) {
      shard.header.set_job_id(0);
      shard.header.set_clock(manifest.clock());
      shard.header.set_index(i);
      shard.header.set_servers(servers);
    }
    Place(shard.header, shard.values);
    const std::string image = ShardImage(shard.header.SerializePartialAsString(), shard.values);
    v1::SavedShard& saved = *manifest.add_shards();
    saved.set_file("part-" + std::to_string(i));
    saved.set_bytes(image.size());
    Save(saved.file(), image);
  }
  PromiseOk(WriteJsonFile("manifest", Folder() / kManifestName, 64 << 20, manifest),
            "writing the manifest");
  const auto reader = CheckpointReader::Open(Folder().path(), CheckpointVerify::kHeaders);
  PromiseDataLoss(reader.status());
  FuzzInput range(places.data(), places.size());
  if (reader.ok()) PromiseOneReading(*reader, range);
}

}  // namespace
FUZZ_TARGET(checkpoint) {
  constexpr void (*kKinds[])(FuzzInput&) = {ReadShard, ReadWorkerState, ReadCheckpoint};
  kKinds[input.Below(3)](input);
}

}  // namespace leeway::checkpoint
