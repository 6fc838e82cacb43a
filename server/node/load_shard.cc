#include "server/node/load_shard.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "config/length.h"
#include "server/checkpoint/restore.h"

namespace leeway {
namespace {

bool IsSync(const v1::TrainingJob& job) {
  return job.consistency().mode() == v1::CONSISTENCY_MODE_SYNC;
}

// Checks that a checkpoint of sync mode has the same version in all blocks.
absl::Status CheckCut(const v1::CheckpointManifest& manifest, const ElementRange& range,
                      const RangeProgress& progress) {
  if (!IsSync(manifest.job()) || progress.version == manifest.clock()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the checkpoint at clock ", manifest.clock(),
                                          " has version ", progress.version, " from element ",
                                          range.offset, ", so its blocks are not from one cut"));
}

// Returns the number of updates of a block in a clock: one for all contributions together in sync
// mode, and otherwise one for each contribution.
uint64_t UpdatesAClock(const v1::TrainingJob& job) {
  return IsSync(job) ? 1 : job.workers().count();
}

// Returns true if each rank continues at its own clock. This needs the same ranks and the same
// meaning of a clock. Otherwise all ranks continue at the clock of the cut, which is the mean of
// their clocks. With the mean, the total number of examples stays the same.
bool KeepsClocks(const v1::CheckpointManifest& manifest, const v1::TrainingJob& job,
                 const v1::JobLength& length) {
  const v1::TrainingJob& before = manifest.job();
  if (IsSync(job) || IsSync(before)) return false;
  if (before.workers().count() != job.workers().count()) return false;
  return !manifest.has_length() || !IsRenumbered(manifest.length(), length);
}

BlockProgress ProgressFor(RangeProgress saved, const v1::CheckpointManifest& manifest,
                          const v1::TrainingJob& job, bool keeps_clocks) {
  if (keeps_clocks) {
    return {.version = saved.version, .clocks = std::move(saved.clocks), .updates = saved.updates};
  }
  return {.version = manifest.clock() * UpdatesAClock(job),
          .clocks = std::vector<uint64_t>(job.workers().count(), manifest.clock()),
          .updates = saved.updates};
}

}  // namespace

absl::Status LoadShard(const std::string& checkpoint, const v1::TrainingJob& job,
                       const v1::JobLength& length, Shard& shard) {
  ASSIGN_OR_RETURN(const CheckpointReader reader,
                   CheckpointReader::Open(checkpoint, CheckpointVerify::kHeaders));
  BlockStore& store = shard.store();
  const BlockLayout& layout = store.layout();
  if (reader.manifest().schema().total() != layout.total()) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", checkpoint, " has ", reader.manifest().schema().total(),
                     " values, but the job's model has ", layout.total()));
  }
  const bool keeps_clocks = KeepsClocks(reader.manifest(), job, length);
  for (uint32_t block = store.server(); block < layout.blocks(); block += layout.shards()) {
    const ElementRange range = layout.Range(block);
    BlockValues values;
    const auto has = [&reader](std::string_view key) {
      return std::find(reader.keys().begin(), reader.keys().end(), key) != reader.keys().end();
    };
    auto read = [&](std::string_view key, SharedFloats& target) {
      return reader.ReadRange(key, range, {target.mutable_data(), range.count});
    };
    values.weights = store.Allocate(block);
    RETURN_IF_ERROR(read(kWeightsKey, values.weights));
    for (const std::string& name : store.slot_names()) {
      values.slots.push_back(store.AllocateSlot(block));
      // A job that continues may begin to keep an average. The average then begins with the
      // weights.
      const std::string key = name == kAverageSlot && !has(name) ? kWeightsKey : name;
      RETURN_IF_ERROR(Annotate(read(key, values.slots.back()),
                               "the job's update rule does not fit the checkpoint"));
    }
    if (has(kShadowKey)) {
      values.shadow = store.AllocateSlot(block);
      RETURN_IF_ERROR(read(kShadowKey, values.shadow));
    }
    ASSIGN_OR_RETURN(RangeProgress progress, reader.Progress(range));
    RETURN_IF_ERROR(CheckCut(reader.manifest(), range, progress));
    shard.Load(block, std::move(values),
               ProgressFor(std::move(progress), reader.manifest(), job, keeps_clocks));
  }
  return absl::OkStatus();
}

}  // namespace leeway
