#include "server/coordinator/core/checkpoints.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/printable.h"

namespace leeway {
namespace {

const v1::CheckpointManifest* StartCut(const CoordinatorOptions& options) {
  return options.resumed ? &options.resumed->manifest : nullptr;
}

}  // namespace

Checkpoints::Checkpoints(const JobFacts& facts, const Membership& ranks,
                         const ShardAssignment& shards, Commands& commands)
    : facts_(facts),
      ranks_(ranks),
      shards_(shards),
      commands_(commands),
      book_(facts.shards(), ranks.size(), StartCut(facts.options())) {}

absl::Status Checkpoints::AddShard(uint32_t shard, uint64_t clock,
                                   const absl::StatusOr<v1::SavedShard>& file, Time now) {
  const bool failed_before = book_.Failed(clock);
  absl::Status added;
  if (file.ok()) {
    added = book_.AddShard(clock, shard, *file, now);
  } else {
    book_.Fail(clock,
               absl::StrCat(shards_.ShardName(shard), ": ", Printable(file.status().message())));
  }
  if (!failed_before && book_.Failed(clock)) {
    const absl::Status& why = file.ok() ? added : file.status();
    commands_.Emit({.name = "checkpoint_failed",
                    .server = shards_.places().owner(shard),
                    .clock = clock,
                    .message = std::string(why.message())});
  }
  return added;
}

WriteManifest Checkpoints::ManifestOf(const CutParts& parts, const v1::ModelSchema& schema,
                                      const v1::JobLength& length) const {
  WriteManifest write;
  write.manifest.set_job_id(facts_.options().job_id);
  write.manifest.set_clock(parts.clock);
  *write.manifest.mutable_schema() = schema;
  *write.manifest.mutable_length() = length;
  *write.manifest.mutable_job() = facts_.job();
  for (const v1::SavedShard& shard : parts.shards) {
    *write.manifest.add_shards() = shard;
    write.manifest.mutable_shards()->rbegin()->clear_clocks();
  }
  for (const auto& [rank, state] : parts.states) {
    v1::SavedWorkerState* saved = write.manifest.add_worker_states();
    saved->set_rank(rank);
    *saved->mutable_file() = state.file;
    if (state.folder != parts.clock) {
      write.adopt.push_back({state.folder, state.file.file()});
    }
  }
  return write;
}

void Checkpoints::Written(uint64_t clock, const absl::Status& status) {
  book_.Written(clock, status);
  if (status.ok()) return commands_.Emit({.name = "checkpoint", .clock = clock});
  commands_.Emit({.name = "checkpoint_failed",
                  .clock = clock,
                  .message = absl::StrCat("the manifest: ", Printable(status.message()))});
}

void Checkpoints::Expire(Time now, bool saving) {
  const Duration limit = FromSeconds(facts_.job().limits().checkpoint_seconds());
  for (const uint64_t clock : book_.Expire(now, limit)) {
    commands_.Emit(
        {.name = "checkpoint_failed",
         .clock = clock,
         .message = absl::StrCat("not complete in time; missing: ", MissingParts(clock, saving))});
  }
}

void Checkpoints::BeginLast(uint64_t generation, Time now) {
  save_until_ = now + FromSeconds(facts_.job().limits().checkpoint_seconds());
  AskAgain(generation, now);
}

void Checkpoints::AskAgain(uint64_t generation, Time now) {
  book_.BeginLast(last_clock_, now);
  if (book_.Writing(last_clock_)) return;
  commands_.Push(SaveAll{saves_++, generation, last_clock_, shards_.Owners(), save_until_});
}

std::optional<std::string> Checkpoints::LastFailed(bool aborted, Time now) const {
  const std::string missing = MissingParts(last_clock_, true);
  const bool stuck = book_.HasAllShards(last_clock_) && !missing.empty();
  if (!aborted && !stuck && !book_.Failed(last_clock_) && now < save_until_) return std::nullopt;
  const std::string error = book_.ErrorOf(last_clock_);
  return absl::StrCat("the last checkpoint, at clock ", last_clock_, ", could not be written",
                      missing.empty() ? "" : "; missing: ", missing, error.empty() ? "" : "; ",
                      error);
}

CutBook::Needs Checkpoints::Needs(bool saving) const {
  return [this, saving](uint64_t clock, uint32_t number) -> std::pair<StateNeed, uint64_t> {
    const Rank& rank = ranks_[number];
    const bool last = saving && clock == last_clock_;
    if (rank.state == RankState::kFinished || rank.state == RankState::kStopped) {
      // The rank passed the periodic cut before it left.
      if (!last && facts_.lockstep() && rank.clock >= clock) return {StateNeed::kAtCut, 0};
      return {StateNeed::kAtLeaving, rank.clock};
    }
    // Outside of lockstep a rank is at a cut's clock only by chance, so the cut takes the rank's
    // newest state.
    if (rank.state == RankState::kFailed || last || !facts_.lockstep()) {
      return {StateNeed::kIfAny, 0};
    }
    return {StateNeed::kAtCut, 0};
  };
}

std::string Checkpoints::MissingParts(uint64_t clock, bool saving) const {
  const CutBook::Missing missing = book_.MissingOf(clock, Needs(saving));
  std::vector<std::string> parts;
  for (const uint32_t shard : missing.shards) parts.push_back(shards_.ShardName(shard));
  for (const uint32_t rank : missing.ranks) {
    parts.push_back(absl::StrCat("the state of worker ", rank));
  }
  return absl::StrJoin(parts, ", ");
}

}  // namespace leeway
