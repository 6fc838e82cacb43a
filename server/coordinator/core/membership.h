// The workers' ranks: who holds which, in which life, and since when it is silent.
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

// Which process: a registration repeated with the same identity is the same life.
struct Identity {
  std::string host;
  uint32_t pid = 0;
  uint64_t nonce = 0;
  auto operator<=>(const Identity&) const = default;
};

enum class RankState {
  // Nobody has held it yet.
  kWaiting,
  kRunning,
  // Silent for longer than its lease, or gone before its time: the rank waits for a new life.
  kLost,
  // Left for good.
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
  // Lives that newer ones have replaced, newest last: their late messages must not win the rank
  // back.
  std::vector<Identity> past;
  Time seen;
  // When `state` last changed.
  Time since;
  // Exchanges completed, as far as is known; a new life goes on where the servers stand, so it
  // never falls.
  uint64_t clock = 0;

  bool left() const { return state >= RankState::kFinished; }
};

// Gives out ranks and incarnations. No two lives of a rank ever have the same incarnation, whatever
// is lost, repeated or reordered; they rise by one from `incarnation_base` + 1. Pure; not
// thread-safe.
class Membership {
 public:
  // Every rank stands at clock 0.
  Membership(uint32_t ranks, uint64_t incarnation_base, Duration lease);

  struct Claimed {
    uint32_t rank = 0;
    bool new_life = false;
  };
  // The rank asked for, or the lowest free one, or the lowest lost one. Asking by number for a rank
  // that another process holds replaces it: a launcher restarts a killed worker before its lease
  // ends. INVALID_ARGUMENT: no such rank. ABORTED: the process has been replaced itself.
  // FAILED_PRECONDITION: the rank has failed, or all are taken. ALREADY_EXISTS: the rank has left
  // in order, and that is `final`; before it is, a new life of such a rank just stands by.
  absl::StatusOr<Claimed> Claim(std::optional<uint32_t> asked, const Identity& who, bool final,
                                Time now);

  // Is `incarnation` the rank's life now? INVALID_ARGUMENT, FAILED_PRECONDITION (nobody holds the
  // rank) or ABORTED (a newer life does).
  absl::Status Check(uint32_t rank, uint64_t incarnation) const;

  // A sign of life of the rank's current life: true if it had been lost and is back.
  bool Seen(uint32_t rank, Time now);
  void Report(uint32_t rank, uint64_t clock);
  // `state`: kFinished, kStopped, kFailed, or kLost for one that goes before its time.
  void Leave(uint32_t rank, RankState state, uint64_t clock, Time now);

  // Ranks whose lease has ended; they are lost now.
  std::vector<uint32_t> Expire(Time now);
  // Who runs, and for how long each was not heard.
  void CountSilent(Time now, Silence& silence) const;
  // Every lease counts from `now`: nobody could be heard.
  void Forgive(Time now);
  // The job has gone back: every rank stands at `clock` again, and those that had left in order are
  // wanted anew. They have a lease's time to be heard.
  void GoBack(uint64_t clock, Time now);

  uint32_t size() const { return static_cast<uint32_t>(ranks_.size()); }
  const Rank& operator[](uint32_t rank) const { return ranks_[rank]; }
  // The rank that this process holds: the one it asks for, or any.
  std::optional<uint32_t> Holder(std::optional<uint32_t> asked, const Identity& who) const;
  // The rank that Claim would give it. FAILED_PRECONDITION: all are taken. INVALID_ARGUMENT: the
  // job has no such rank.
  absl::StatusOr<uint32_t> Place(std::optional<uint32_t> asked, const Identity& who) const;
  // Ranks in one of the states, in order; the lowest ones if there are more than `at_most`.
  std::vector<uint32_t> In(std::initializer_list<RankState> states,
                           size_t at_most = SIZE_MAX) const;
  // By rank: of the newest life; 0: this coordinator has given out none.
  std::vector<uint64_t> Incarnations() const;
  // How many they are.
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
  // Who is in each state, so that with ten thousand ranks no message looks at all.
  std::array<std::set<uint32_t>, kRankStates> by_state_;
  // Current lives.
  std::map<Identity, uint32_t> holders_;
};

}  // namespace leeway
