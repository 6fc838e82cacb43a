// Sync clocks that need not be everybody's: which contributions count.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/blocks.h"
#include "common/status.h"
#include "server/coordinator/coordinator_core.h"
#include "server/coordinator/phrases.h"

namespace leeway {
namespace {

constexpr uint64_t kHeldMax_us = 1'000'000'000;

Time Before(Time now, uint64_t us) {
  return now - std::chrono::microseconds(std::min(us, kHeldMax_us));
}

}  // namespace

absl::Status CoordinatorCore::ContributionsHeld(const v1::ContributionsHeldRequest& request,
                                                Time now) {
  RETURN_IF_ERROR(CheckJob(request.job()));
  const std::string who = absl::StrCat("who has shard ", request.index());
  RETURN_IF_ERROR(CheckGeneration(request.generation(), who));
  if (!commits_sets_ || request.index() >= placement_.shards()) {
    return absl::InvalidArgumentError(
        absl::StrCat(who, " says what it holds; a job with ", placement_.shards(),
                     commits_sets_ ? " shards" : " shards, which does not ask for it"));
  }
  // Its owner of before, whose message is late: what that held nobody holds now.
  if (request.epoch() < placement_.owner_since(request.index())) return absl::OkStatus();
  const auto& latest = quorum_.latest();
  if (request.again() && latest && latest->clock == request.clock()) Commit(*latest);
  if (request.refused_size() > 0 && request.clock() == quorum_.next()) latest_lacks_ = true;
  std::vector<Time> since;
  for (const uint64_t held : request.held_us()) since.push_back(Before(now, held));
  quorum_.OnHeld(request.index(), request.clock(), {request.ranks().begin(), request.ranks().end()},
                 since);
  CommitSets(now);
  return absl::OkStatus();
}

void CoordinatorCore::RestartQuorum() {
  const BlockLayout layout = BlockLayout::ForModel(schema_->total(), placement_.shards(),
                                                   options_.job.servers().block_bytes());
  std::vector<uint32_t> shards(layout.ServersWithBlocks());
  std::iota(shards.begin(), shards.end(), 0);
  quorum_.Restart(CutClock(), shards);
  latest_lacks_ = false;
  grace_.Restart();
}

std::vector<bool> CoordinatorCore::Wanted() const {
  const bool all = options_.job.workers().on_worker_loss() == v1::WORKER_LOSS_WAIT;
  return all ? std::vector<bool>(ranks_.size(), true) : live_;
}

bool CoordinatorCore::MayCommit() const {
  const bool running = phase_ == Phase::kRunning || phase_ == Phase::kStopping;
  // Every block ends at the stop clock.
  return running && !aborted_ && !(stop_at_ && quorum_.next() >= *stop_at_);
}

void CoordinatorCore::CommitSets(Time now) {
  if (!commits_sets_) return;
  const std::vector<bool> wanted = Wanted();
  const uint32_t backup = options_.job.consistency().backup_workers();
  if (!MayCommit() || !quorum_.Enough(wanted, backup)) return grace_.Stop();
  if (!quorum_.Missing(wanted).empty() && now < grace_.Until(now, quorum_.came())) return;
  grace_.NextClock(now, quorum_.came(), quorum_.Arrivals());
  Commit(*quorum_.Take(wanted, backup));
  // The set before is part of every block, for it was read before this one's contributions came.
  latest_lacks_ = false;
}

// What is held for a clock has one holder: who takes a shard over gets it once more, from the lives
// that have sent it.
void CoordinatorCore::ForgetHeld(uint64_t epoch) {
  for (uint32_t shard = 0; shard < placement_.shards(); ++shard) {
    if (placement_.owner_since(shard) <= epoch) continue;
    quorum_.Forget(shard);
    latest_lacks_ = true;
  }
}

std::optional<uint32_t> CoordinatorCore::LostContribution() const {
  const auto& set = quorum_.latest();
  if (!latest_lacks_ || !set) return std::nullopt;
  std::optional<uint32_t> lost;
  for (const uint32_t rank : set->ranks) {
    // It has what every block has become of the set.
    if (ranks_[rank].clock > set->clock) return std::nullopt;
    if (!live_[rank]) lost = rank;
  }
  return lost;
}

void CoordinatorCore::MakeUpForLost(Time now) {
  const std::optional<uint32_t> rank = LostContribution();
  if (!rank) return;
  GoBack(absl::StrCat("worker ", *rank, " is lost, and some shard does not have, or has refused, ",
                      "what it had contributed to clock ", quorum_.latest()->clock),
         now);
}

std::string CoordinatorCore::GraceMessage(Time now) const {
  if (!grace_.until() || now >= *grace_.until()) return "";
  return absl::StrFormat("clock %d could do without %s and waits for it, %.3g s more at most",
                         quorum_.next(), ListOf("worker", quorum_.Missing(Wanted())),
                         Seconds(*grace_.until() - now));
}

void CoordinatorCore::Commit(CommitSet set) {
  set.generation = generation_;
  commands_.push_back(std::move(set));
}

// It may have come to a server before the shard did; and who holds less than the set tells nothing
// that would be answered with it.
void CoordinatorCore::CommitAgain() {
  if (latest_lacks_ && quorum_.latest()) Commit(*quorum_.latest());
}

// Where all blocks are brought to by what they hold, whoever is lost: later clocks get no set.
uint64_t CoordinatorCore::FixStopHere() {
  if (!stop_at_) {
    stop_at_ = std::min(quorum_.next(), length_->clocks());
    if (!Complete()) Emit({.name = "stop_fixed", .clock = *stop_at_});
  }
  return *stop_at_;
}

}  // namespace leeway
