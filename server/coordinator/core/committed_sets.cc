#include "server/coordinator/core/committed_sets.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/coordinator/core/phrases.h"

namespace leeway {
namespace {

constexpr uint64_t kHeldMax_us = 1'000'000'000;

Time Before(Time now, uint64_t us) {
  return now - std::chrono::microseconds(std::min(us, kHeldMax_us));
}

}  // namespace

CommittedSets::CommittedSets(const JobFacts& facts, Commands& commands)
    : facts_(facts),
      commands_(commands),
      grace_({facts.job().consistency().grace_deviations(),
              FromSeconds(facts.job().limits().grace_seconds())}) {}

void CommittedSets::Restart(uint64_t clock, uint32_t shards) {
  std::vector<uint32_t> numbers(shards);
  std::iota(numbers.begin(), numbers.end(), 0);
  book_.Restart(clock, numbers);
  latest_lacks_ = false;
  grace_.Restart();
}

void CommittedSets::TakeHeld(const v1::ContributionsHeldRequest& request, uint64_t generation,
                             Time now) {
  const auto& latest = book_.latest();
  if (request.again() && latest && latest->clock == request.clock()) Commit(*latest, generation);
  if (request.refused_size() > 0 && request.clock() == book_.next()) latest_lacks_ = true;
  std::vector<Time> since;
  for (const uint64_t held : request.held_us()) since.push_back(Before(now, held));
  book_.OnHeld(request.index(), request.clock(), {request.ranks().begin(), request.ranks().end()},
               since);
}

void CommittedSets::ForgetHeld(const Placement& places, uint64_t epoch) {
  for (uint32_t shard = 0; shard < places.shards(); ++shard) {
    if (places.owner_since(shard) <= epoch) continue;
    book_.Forget(shard);
    latest_lacks_ = true;
  }
}

void CommittedSets::CommitNext(bool open, const std::vector<bool>& live, uint64_t generation,
                               Time now) {
  if (!facts_.commits_sets()) return;
  const std::vector<bool> wanted = Wanted(live);
  const uint32_t backup = facts_.job().consistency().backup_workers();
  if (!open || !book_.Enough(wanted, backup)) return grace_.Stop();
  if (!book_.Missing(wanted).empty() && now < grace_.Until(now, book_.came())) return;
  grace_.NextClock(now, book_.came(), book_.Arrivals());
  Commit(*book_.Take(wanted, backup), generation);
  // No shard lacks a contribution of the previous set any more. Every block has applied that set,
  // because the workers read all blocks before they sent the contributions of the new set.
  latest_lacks_ = false;
}

// The server that now owns the shard may have received the latest set before it received the shard.
// The coordinator sends a set again in answer to a report, but an owner that holds less than the
// set sends no report. So the set is sent again here.
void CommittedSets::CommitAgain(uint64_t generation) {
  if (latest_lacks_ && book_.latest()) Commit(*book_.latest(), generation);
}

std::optional<CommittedSets::Lost> CommittedSets::LostContribution(
    const Membership& ranks, const std::vector<bool>& live) const {
  const auto& set = book_.latest();
  if (!latest_lacks_ || !set) return std::nullopt;
  std::optional<Lost> lost;
  for (const uint32_t rank : set->ranks) {
    // The worker has passed the set's clock. So it has read every block, and every block had
    // applied the set.
    if (ranks[rank].clock > set->clock) return std::nullopt;
    if (!live[rank]) lost = Lost{rank, set->clock};
  }
  return lost;
}

std::string CommittedSets::GraceMessage(const std::vector<bool>& live, Time now) const {
  if (!grace_.until() || now >= *grace_.until()) return "";
  return absl::StrFormat("clock %d could go on without %s, but waits for at most %.3g s more",
                         book_.next(), ListOf("worker", book_.Missing(Wanted(live))),
                         Seconds(*grace_.until() - now));
}

void CommittedSets::Commit(CommitSet set, uint64_t generation) {
  set.generation = generation;
  commands_.Push(std::move(set));
}

std::vector<bool> CommittedSets::Wanted(const std::vector<bool>& live) const {
  const bool all = facts_.job().workers().on_worker_loss() == v1::WORKER_LOSS_WAIT;
  return all ? std::vector<bool>(live.size(), true) : live;
}

}  // namespace leeway
