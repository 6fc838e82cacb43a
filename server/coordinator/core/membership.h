// The workers' ranks: which process holds each rank, in which life, and how long that process has
// been silent.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "server/coordinator/core/hearing.h"

namespace leeway {

// Identifies a process. Two registrations with the same identity are of the same life.
struct Identity {
  std::string host;
  uint32_t pid = 0;
  uint64_t nonce = 0;
  auto operator<=>(const Identity&) const = default;
};

enum class RankState {
  // No process has held the rank yet.
  kWaiting,
  kRunning,
  // The process was silent for longer than its lease, or left early. The rank waits for a new life.
  kLost,
  // In this state and in those below, the rank has left for good.
  kFinished,
  kStopped,
  kFailed,
};
inline constexpr size_t kRankStates = 6;
const char* RankStateName(RankState state);

struct Rank {
  RankState state = RankState::kWaiting;
  uint64_t incarnation = 0;
  Identity life;
  // The earlier lives of the rank, newest last. They are kept so that a late message from one of
  // them does not win the rank back.
  std::vector<Identity> past;
  Time seen;
  // When `state` last changed.
  Time since;
  // The number of completed exchanges, as far as is known. A new life does not lower it, because it
  // continues where the servers are.
  uint64_t clock = 0;

  bool left() const { return state >= RankState::kFinished; }
};

// Assigns ranks and incarnations. No two lives of a rank ever have the same incarnation, even if
// messages are lost, repeated or reordered. Incarnations rise by one from `incarnation_base` + 1.
// Pure; not thread-safe.
class Membership {
 public:
  // Every rank begins at clock 0.
  Membership(uint32_t ranks, uint64_t incarnation_base, Duration lease);

  struct Claimed {
    uint32_t rank = 0;
    bool new_life = false;
  };
  // Gives the process the rank that it asks for. A process that asks for no rank gets the lowest
  // free one, or else the lowest lost one. A process that asks for a held rank replaces the holder,
  // so that a launcher can restart a killed worker before its lease ends. Returns INVALID_ARGUMENT
  // if the rank does not exist, ABORTED if this process was replaced itself, and
  // FAILED_PRECONDITION if the rank has failed or all ranks are taken. Returns ALREADY_EXISTS if
  // the rank has left in order and `final` is true. If `final` is false, a rank that has left in
  // order can have a new life, which has nothing to do yet.
  absl::StatusOr<Claimed> Claim(std::optional<uint32_t> asked, const Identity& who, bool final,
                                Time now);

  // Checks that `incarnation` is the rank's current life. Returns INVALID_ARGUMENT if the rank does
  // not exist, FAILED_PRECONDITION if this incarnation was never assigned, and ABORTED if a newer
  // life has the rank.
  absl::Status Check(uint32_t rank, uint64_t incarnation) const;

  // Takes a sign of life of the rank's current life. Returns true if the rank was lost and is back.
  bool Seen(uint32_t rank, Time now);
  void Report(uint32_t rank, uint64_t clock);
  // Records that the rank has left. `state` is kFinished, kStopped or kFailed; kLost for a worker
  // that leaves early.
  void Leave(uint32_t rank, RankState state, uint64_t clock, Time now);

  // Marks each rank as lost whose lease has ended, and returns these ranks.
  std::vector<uint32_t> Expire(Time now);
  // Counts the running ranks, and how long each has been silent.
  void CountSilent(Time now, Silence& silence) const;
  // Makes every lease begin again at `now`, because this process could receive no messages.
  void Forgive(Time now);
  // Takes every rank back to `clock`, because the job has gone back. Ranks that had left in order
  // are wanted again. Each rank's next heartbeat must come within one lease.
  void GoBack(uint64_t clock, Time now);

  uint32_t size() const { return static_cast<uint32_t>(ranks_.size()); }
  const Rank& operator[](uint32_t rank) const { return ranks_[rank]; }
  // Returns the rank that this process holds; nullopt if it holds no rank, or asks for another
  // rank.
  std::optional<uint32_t> Holder(std::optional<uint32_t> asked, const Identity& who) const;
  // Returns the rank that Claim would assign. Returns FAILED_PRECONDITION if all ranks are taken,
  // and INVALID_ARGUMENT if the job has no such rank.
  absl::StatusOr<uint32_t> Place(std::optional<uint32_t> asked, const Identity& who) const;
  // Returns the lowest `at_most` ranks that are in one of the states, in ascending order.
  std::vector<uint32_t> In(std::initializer_list<RankState> states,
                           size_t at_most = SIZE_MAX) const;
  // Returns, by rank, the incarnation of the newest life; 0 if this coordinator has assigned no
  // incarnation to the rank.
  std::vector<uint64_t> Incarnations() const;
  size_t Count(RankState state) const { return by_state_[static_cast<size_t>(state)].size(); }

 private:
  std::set<uint32_t>& Those(RankState state) { return by_state_[static_cast<size_t>(state)]; }
  const std::set<uint32_t>& Those(RankState state) const {
    return by_state_[static_cast<size_t>(state)];
  }
  void Set(uint32_t rank, RankState state, Time now);
  absl::StatusOr<uint32_t> FreePlace() const;

  const uint64_t incarnation_base_;
  const Duration lease_;
  std::vector<Rank> ranks_;
  // The ranks in each state, so that with ten thousand ranks no message has to look at all of them.
  std::array<std::set<uint32_t>, kRankStates> by_state_;
  // The current lives.
  std::map<Identity, uint32_t> holders_;
};

}  // namespace leeway
