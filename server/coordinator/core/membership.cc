#include "server/coordinator/core/membership.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/status.h"

namespace leeway {
namespace {

// The most past lives remembered for each rank. A launcher restarts a worker less often.
constexpr size_t kPastLivesMax = 64;

std::string Name(const Identity& who) {
  return absl::StrCat("process ", who.pid, " on ", who.host);
}

}  // namespace

const char* RankStateName(RankState state) {
  switch (state) {
    case RankState::kWaiting:
      return "waiting";
    case RankState::kRunning:
      return "running";
    case RankState::kLost:
      return "lost";
    case RankState::kFinished:
      return "finished";
    case RankState::kStopped:
      return "stopped";
    case RankState::kFailed:
      return "failed";
  }
  return "unknown";
}

Membership::Membership(uint32_t ranks, uint64_t incarnation_base, Duration lease)
    : incarnation_base_(incarnation_base), lease_(lease), ranks_(ranks) {
  for (Rank& rank : ranks_) rank.incarnation = incarnation_base_;
  for (uint32_t i = 0; i < ranks; ++i) Those(RankState::kWaiting).insert(i);
}

void Membership::Set(uint32_t rank, RankState state, Time now) {
  Those(ranks_[rank].state).erase(rank);
  Those(state).insert(rank);
  ranks_[rank].state = state;
  ranks_[rank].since = now;
}

absl::StatusOr<Membership::Claimed> Membership::Claim(std::optional<uint32_t> asked,
                                                      const Identity& who, bool final, Time now) {
  ASSIGN_OR_RETURN(const uint32_t number, Place(asked, who));
  Rank& rank = ranks_[number];
  const bool held = rank.incarnation > incarnation_base_;
  if (held && std::find(rank.past.begin(), rank.past.end(), who) != rank.past.end()) {
    return absl::AbortedError(absl::StrCat(Name(who), " was worker ", number, ", but ",
                                           Name(rank.life),
                                           " has taken its place; this process must stop"));
  }
  if (rank.left() && (final || rank.state == RankState::kFailed)) {
    const std::string left =
        absl::StrCat("worker ", number, " has ", RankStateName(rank.state), " and left the job");
    if (rank.state == RankState::kFailed) return absl::FailedPreconditionError(left);
    return absl::AlreadyExistsError(left);
  }
  if (held && rank.life == who) {
    return Claimed{number, false};
  }
  if (held) {
    if (const auto old = holders_.find(rank.life); old != holders_.end() && old->second == number) {
      holders_.erase(old);
    }
    if (rank.past.size() == kPastLivesMax) rank.past.erase(rank.past.begin());
    rank.past.push_back(rank.life);
  }
  ++rank.incarnation;
  rank.life = who;
  if (!rank.left()) Set(number, RankState::kRunning, now);
  rank.seen = now;
  holders_[who] = number;
  return Claimed{number, true};
}

absl::StatusOr<uint32_t> Membership::Place(std::optional<uint32_t> asked,
                                           const Identity& who) const {
  if (!asked) {
    if (const auto holder = Holder(asked, who)) return *holder;
    return FreePlace();
  }
  if (*asked >= size()) {
    return absl::InvalidArgumentError(absl::StrCat(Name(who), " asks for rank ", *asked,
                                                   " of a job with ", size(),
                                                   " workers: ranks are 0 to ", size() - 1));
  }
  return *asked;
}

absl::StatusOr<uint32_t> Membership::FreePlace() const {
  for (const RankState wanted : {RankState::kWaiting, RankState::kLost}) {
    const std::set<uint32_t>& those = by_state_[static_cast<size_t>(wanted)];
    if (!those.empty()) return *those.begin();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "all ", Counted(size(), "rank"), " are taken; use --rank to replace the worker of a rank"));
}

absl::Status Membership::Check(uint32_t rank, uint64_t incarnation) const {
  if (rank >= size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " does not exist: the job has ", Counted(size(), "worker")));
  }
  const Rank& current = ranks_[rank];
  if (current.incarnation == incarnation_base_ || incarnation > current.incarnation) {
    return absl::FailedPreconditionError(absl::StrCat("the coordinator does not know incarnation ",
                                                      incarnation, " of worker ", rank,
                                                      ": the worker must register first"));
  }
  if (incarnation < current.incarnation) {
    return absl::AbortedError(absl::StrCat(
        "worker ", rank, " incarnation ", incarnation, " has been replaced by incarnation ",
        current.incarnation, ", ", Name(current.life), "; this process must stop"));
  }
  return absl::OkStatus();
}

bool Membership::Seen(uint32_t rank, Time now) {
  Rank& current = ranks_[rank];
  current.seen = now;
  if (current.state != RankState::kLost) return false;
  Set(rank, RankState::kRunning, now);
  return true;
}

void Membership::Report(uint32_t rank, uint64_t clock) {
  ranks_[rank].clock = std::max(ranks_[rank].clock, clock);
}

void Membership::Leave(uint32_t rank, RankState state, uint64_t clock, Time now) {
  Report(rank, clock);
  Set(rank, state, now);
}

std::vector<uint32_t> Membership::Expire(Time now) {
  std::vector<uint32_t> lost;
  for (uint32_t i = 0; i < size(); ++i) {
    Rank& rank = ranks_[i];
    if (rank.state != RankState::kRunning || now - rank.seen <= lease_) continue;
    Set(i, RankState::kLost, now);
    lost.push_back(i);
  }
  return lost;
}

void Membership::CountSilent(Time now, Silence& silence) const {
  for (const uint32_t rank : Those(RankState::kRunning)) {
    silence.Count(now - ranks_[rank].seen, lease_);
  }
}

void Membership::Forgive(Time now) {
  for (Rank& rank : ranks_) rank.seen = now;
}

void Membership::GoBack(uint64_t clock, Time now) {
  for (uint32_t i = 0; i < size(); ++i) {
    Rank& rank = ranks_[i];
    rank.clock = clock;
    const bool left_in_order =
        rank.state == RankState::kFinished || rank.state == RankState::kStopped;
    if (left_in_order) Set(i, RankState::kRunning, now);
  }
  Forgive(now);
}

std::optional<uint32_t> Membership::Holder(std::optional<uint32_t> asked,
                                           const Identity& who) const {
  if (asked) {
    const bool holds = *asked < size() && ranks_[*asked].incarnation > incarnation_base_ &&
                       ranks_[*asked].life == who;
    return holds ? asked : std::nullopt;
  }
  const auto found = holders_.find(who);
  if (found == holders_.end()) return std::nullopt;
  return found->second;
}

std::vector<uint64_t> Membership::Incarnations() const {
  std::vector<uint64_t> incarnations;
  for (const Rank& rank : ranks_) {
    const bool given = rank.incarnation > incarnation_base_;
    incarnations.push_back(given ? rank.incarnation : 0);
  }
  return incarnations;
}

std::vector<uint32_t> Membership::In(std::initializer_list<RankState> states,
                                     size_t at_most) const {
  std::vector<uint32_t> found;
  for (const RankState state : states) {
    const std::set<uint32_t>& those = by_state_[static_cast<size_t>(state)];
    size_t left = at_most;
    for (auto each = those.begin(); each != those.end() && left > 0; ++each, --left) {
      found.push_back(*each);
    }
  }
  std::sort(found.begin(), found.end());
  if (found.size() > at_most) found.resize(at_most);
  return found;
}

}  // namespace leeway
