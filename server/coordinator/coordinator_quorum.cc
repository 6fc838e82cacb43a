// Sync clocks that need not be everybody's: which contributions count.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/blocks.h"
#include "common/status.h"
#include "server/coordinator/coordinator_core.h"

namespace leeway {

absl::Status CoordinatorCore::ContributionsHeld(const v1::ContributionsHeldRequest& request) {
  RETURN_IF_ERROR(CheckJob(request.job()));
  const std::string who = absl::StrCat("server ", request.index());
  RETURN_IF_ERROR(CheckGeneration(request.generation(), who));
  if (!commits_sets_ || request.index() >= servers_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(who, " says what it holds; a job with ", servers_.size(),
                     commits_sets_ ? " servers" : " servers, which does not ask for it"));
  }
  const auto& latest = quorum_.latest();
  if (request.again() && latest && latest->clock == request.clock()) Commit(*latest);
  quorum_.OnHeld(request.index(), request.clock(),
                 {request.ranks().begin(), request.ranks().end()});
  CommitSets();
  return absl::OkStatus();
}

void CoordinatorCore::RestartQuorum() {
  const BlockLayout layout = BlockLayout::ForModel(schema_->total(), servers_.size(),
                                                   options_.job.servers().block_bytes());
  std::vector<uint32_t> servers(layout.ServersWithBlocks());
  std::iota(servers.begin(), servers.end(), 0);
  quorum_.Restart(CutClock(), servers);
}

void CoordinatorCore::CommitSets() {
  const bool running = phase_ == Phase::kRunning || phase_ == Phase::kStopping;
  if (!commits_sets_ || !running || aborted_) return;
  // Every block ends at the stop clock.
  if (stop_at_ && quorum_.next() >= *stop_at_) return;
  const bool all = options_.job.workers().on_worker_loss() == v1::WORKER_LOSS_WAIT;
  const std::vector<bool> wanted = all ? std::vector<bool>(ranks_.size(), true) : live_;
  const auto set = quorum_.Take(wanted, options_.job.consistency().backup_workers());
  if (set) Commit(*set);
}

void CoordinatorCore::Commit(CommitSet set) {
  set.generation = generation_;
  commands_.push_back(std::move(set));
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
