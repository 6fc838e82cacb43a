#include "server/checkpoint/restore.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "server/checkpoint/manifest.h"

namespace leeway {
namespace {

absl::Status CheckIdentity(const v1::CheckpointManifest& manifest, uint32_t index,
                           const ShardFile& shard) {
  const v1::ShardFileHeader& header = shard.header();
  const auto servers = static_cast<uint32_t>(manifest.shards_size());
  if (header.job_id() == manifest.job_id() && header.clock() == manifest.clock() &&
      header.index() == index && header.servers() == servers) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "shard file '", shard.path(), "' is shard ", header.index(), " of ", header.servers(),
      " at clock ", header.clock(), " of job ", header.job_id(), "; the manifest names shard ",
      index, " of ", servers, " at clock ", manifest.clock(), " of job ", manifest.job_id()));
}

std::vector<std::string> KeysOf(const v1::BlockRecord& block) {
  std::vector<std::string> keys;
  for (const v1::ValuesRecord& record : block.values()) keys.push_back(record.key());
  std::sort(keys.begin(), keys.end());
  return keys;
}

uint64_t UpdatesOf(const v1::BlockRecord& block) {
  return block.has_updates() ? block.updates() : block.version();
}

}  // namespace

CheckpointReader::CheckpointReader(std::string folder, v1::CheckpointManifest manifest,
                                   std::vector<ShardFile> shards)
    : folder_(std::move(folder)), manifest_(std::move(manifest)), shards_(std::move(shards)) {}

absl::StatusOr<CheckpointReader> CheckpointReader::Open(const std::string& folder,
                                                        CheckpointVerify verify) {
  ASSIGN_OR_RETURN(v1::CheckpointManifest manifest, ReadManifest(folder));
  RETURN_IF_ERROR(verify == CheckpointVerify::kDigests ? CheckFileDigests(folder, manifest)
                                                       : CheckFileSizes(folder, manifest));
  std::vector<ShardFile> shards;
  shards.reserve(static_cast<size_t>(manifest.shards_size()));
  for (const v1::SavedShard& saved : manifest.shards()) {
    ASSIGN_OR_RETURN(ShardFile shard, ShardFile::Open(absl::StrCat(folder, "/", saved.file())));
    RETURN_IF_ERROR(CheckIdentity(manifest, static_cast<uint32_t>(shards.size()), shard));
    shards.push_back(std::move(shard));
  }
  CheckpointReader reader(folder, std::move(manifest), std::move(shards));
  RETURN_IF_ERROR(reader.OpenExtents());
  return reader;
}

absl::Status CheckpointReader::OpenExtents() {
  for (size_t i = 0; i < shards_.size(); ++i) {
    for (const v1::BlockRecord& block : shards_[i].header().blocks()) {
      extents_.push_back({{block.offset(), block.count()}, &block, i});
    }
  }
  std::sort(extents_.begin(), extents_.end(),
            [](const Extent& a, const Extent& b) { return a.range.offset < b.range.offset; });
  if (!extents_.empty()) keys_ = KeysOf(*extents_.front().record);
  return CheckExtents();
}

absl::Status CheckpointReader::CheckExtents() const {
  uint64_t end = 0;
  for (const Extent& extent : extents_) {
    const std::string& path = shards_[extent.shard].path();
    if (extent.range.offset != end) {
      return absl::DataLossError(absl::StrCat("shard file '", path, "' has a block at element ",
                                              extent.range.offset, ", but the block at element ",
                                              end, " must come next"));
    }
    if (KeysOf(*extent.record) != keys_ ||
        extent.record->clocks_size() != extents_.front().record->clocks_size()) {
      return absl::DataLossError(absl::StrCat(
          "shard file '", path, "': the block at element ", end,
          " and the first block differ in their values or ranks; this block has the values ",
          absl::StrJoin(KeysOf(*extent.record), ", ")));
    }
    end = extent.range.end();
  }
  if (end == manifest_.schema().total()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("checkpoint '", folder_, "': the blocks end at element ",
                                          end, ", but the model has ", manifest_.schema().total(),
                                          " elements"));
}

absl::Status CheckpointReader::CheckRange(ElementRange range) const {
  const uint64_t total = manifest_.schema().total();
  if (range.count > 0 && range.offset < total && range.count <= total - range.offset) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("checkpoint '", folder_, "' has ", total, " elements, but the caller asked for ",
                   range.count, " elements from element ", range.offset));
}

std::span<const CheckpointReader::Extent> CheckpointReader::Overlapping(ElementRange range) const {
  const auto first = std::partition_point(
      extents_.begin(), extents_.end(),
      [&](const Extent& extent) { return extent.range.end() <= range.offset; });
  const auto last = std::partition_point(first, extents_.end(), [&](const Extent& extent) {
    return extent.range.offset < range.end();
  });
  return {first, last};
}

absl::Status CheckpointReader::ReadRange(std::string_view key, ElementRange range,
                                         std::span<float> out) const {
  RETURN_IF_ERROR(CheckRange(range));
  if (out.size() != range.count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the buffer has ", out.size(), " floats, but the caller asked for ", range.count));
  }
  std::vector<float> whole;
  for (const Extent& extent : Overlapping(range)) {
    const ShardFile& shard = shards_[extent.shard];
    const uint64_t begin = std::max(range.offset, extent.range.offset);
    const uint64_t end = std::min(range.end(), extent.range.end());
    const std::span<float> target = out.subspan(begin - range.offset, end - begin);
    if (target.size() == extent.range.count) {
      RETURN_IF_ERROR(shard.ReadValues(*extent.record, key, target));
      continue;
    }
    whole.resize(extent.range.count);
    RETURN_IF_ERROR(shard.ReadValues(*extent.record, key, whole));
    std::copy_n(whole.data() + (begin - extent.range.offset), target.size(), target.data());
  }
  return absl::OkStatus();
}

absl::StatusOr<FloatBuffer> CheckpointReader::ReadAll(std::string_view key) const {
  FloatBuffer values(manifest_.schema().total());
  RETURN_IF_ERROR(ReadRange(key, {0, values.size()}, values.span()));
  return values;
}

absl::StatusOr<RangeProgress> CheckpointReader::Progress(ElementRange range) const {
  RETURN_IF_ERROR(CheckRange(range));
  const std::span<const Extent> extents = Overlapping(range);
  const auto& first = extents.front().record->clocks();
  RangeProgress progress{0, {first.begin(), first.end()}};
  progress.updates = UpdatesOf(*extents.front().record);
  for (const Extent& extent : extents) {
    progress.version = std::max(progress.version, extent.record->version());
    // The lowest number is used, because too high a number would make Adam's steps too large.
    progress.updates = std::min(progress.updates, UpdatesOf(*extent.record));
    for (int rank = 0; rank < extent.record->clocks_size(); ++rank) {
      uint64_t& clock = progress.clocks[static_cast<size_t>(rank)];
      clock = std::min(clock, extent.record->clocks(rank));
    }
  }
  return progress;
}

std::string CheckpointReader::WorkerStatePath(uint32_t rank) const {
  for (const v1::SavedWorkerState& state : manifest_.worker_states()) {
    if (state.rank() == rank) return absl::StrCat(folder_, "/", state.file().file());
  }
  return "";
}

}  // namespace leeway
