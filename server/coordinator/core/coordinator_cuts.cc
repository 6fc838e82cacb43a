// Collects the parts of cuts that servers and workers hand in.
#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/printable.h"
#include "common/status.h"
#include "server/coordinator/core/coordinator_core.h"

namespace leeway {

absl::Status CoordinatorCore::ShardSaved(const v1::ShardSavedRequest& request, Time now) {
  RETURN_IF_ERROR(facts().CheckJob(request.job()));
  const uint32_t shards = shards_.places().shards();
  if (request.index() >= shards) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shard ", request.index(), " does not exist: the job has ", Counted(shards, "shard")));
  }
  const std::string who = shards_.ShardName(request.index());
  RETURN_IF_ERROR(CheckGeneration(request.generation(), who));
  const uint64_t clock = request.clock(), every = model_.cut_every();
  if (!model_.length() || clock == 0 || every == 0 || clock % every != 0 ||
      clock > LargestClock()) {
    const std::string when = every == 0
                                 ? "it takes only the last one"
                                 : absl::StrCat("cuts are taken every ", Counted(every, "clock"));
    return absl::InvalidArgumentError(
        absl::StrCat("the job takes no cut at clock ", clock, ": ", when));
  }
  if (request.error().empty()) {
    RETURN_IF_ERROR(Annotate(CheckSavedShard(request.shard(), Limits()), who));
  }
  // For the last cut only the answers to SaveAll count.
  if (life_.phase() >= Phase::kSaving && clock >= cuts_.last_clock()) return absl::OkStatus();
  if (request.error().empty()) return AddShard(request.index(), clock, request.shard(), now);
  return AddShard(request.index(), clock, absl::UnavailableError(Printable(request.error())), now);
}

void CoordinatorCore::Take(const SaveDone& done, Time now) {
  if (!saving() || !cuts_.IsOfLast(done.round, done.clock)) return;
  // The shard's blocks have not reached the clock of the latest set yet. They will, unless a rank
  // that must contribute is lost.
  if (facts().commits_sets() && absl::IsFailedPrecondition(done.saved.status())) {
    sets_.MarkLacking();
    cuts_.AskLater();
    return Advance(now);
  }
  AddShard(done.shard, done.clock, done.saved, now).IgnoreError();
}

absl::Status CoordinatorCore::AddShard(uint32_t shard, uint64_t clock,
                                       const absl::StatusOr<v1::SavedShard>& file, Time now) {
  const absl::Status added = cuts_.AddShard(shard, clock, file, now);
  WriteWholeCut();
  Advance(now);
  return added;
}

absl::Status CoordinatorCore::WorkerStateSaved(const Sender& sender, const v1::SavedShard& file,
                                               Time now) {
  RETURN_IF_ERROR(CheckSender(sender));
  SignOfLife(sender.rank, now);
  RETURN_IF_ERROR(cuts_.AddState(sender.clock, sender.rank, file));
  WriteWholeCut();
  Advance(now);
  return absl::OkStatus();
}

void CoordinatorCore::WriteWholeCut() {
  if (!model_.schema() || !model_.length() || life_.phase() >= Phase::kShutdown) return;
  const std::optional<CutParts> parts = cuts_.TakeWhole(saving());
  if (!parts) return;
  WriteManifest write = cuts_.ManifestOf(*parts, *model_.schema(), *model_.length());
  leases_.AddTo(parts->clock, parts->shards, write.manifest);
  commands_.Push(std::move(write));
}

void CoordinatorCore::Take(const ManifestWritten& written, Time now) {
  const bool first = !cuts_.newest();
  cuts_.Written(written.clock, written.status);
  // The job's first checkpoint is put on record. After the last cut this is not necessary, because
  // the record of the job's end follows.
  if (first && cuts_.newest() && !saving()) WriteDown(v1::JOB_STARTING, /*awaited=*/false);
  leases_.Written(written.clock, written.status.ok());
  // Another cut may have become complete meanwhile.
  WriteWholeCut();
  Advance(now);
}

}  // namespace leeway
