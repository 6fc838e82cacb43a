// The job's checkpoints: the cuts while it trains, and the last one at its end. Owns the parts that
// are there (cut_book.h); must be told of each part, and of each manifest that was written or not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "leeway/v1/checkpoint.pb.h"
#include "server/coordinator/core/commands.h"
#include "server/coordinator/core/cut_book.h"
#include "server/coordinator/core/job_facts.h"
#include "server/coordinator/core/membership.h"
#include "server/coordinator/core/shard_assignment.h"

namespace leeway {

// Pure; not thread-safe.
class Checkpoints {
 public:
  // The others outlive it.
  Checkpoints(const JobFacts& facts, const Membership& ranks, const ShardAssignment& shards,
              Commands& commands);

  const CutBook& book() const { return book_; }
  std::optional<uint64_t> newest() const { return book_.newest(); }
  // Where every rank stands for certain after a restart: outside of sync a cut's clock is a mean.
  uint64_t CertainClock() const { return facts_.sync() ? newest().value_or(0) : 0; }

  // As CutBook's.
  void Expect(uint32_t shards, bool states) { book_.Expect(shards, states); }
  void GoBack() { book_.GoBack(); }
  absl::Status AddState(uint64_t clock, uint32_t rank, const v1::SavedShard& file) {
    return book_.AddState(clock, rank, file);
  }
  // What the rank keeps at this clock or later is here, or it keeps nothing.
  bool HasState(uint32_t rank, uint64_t clock) const {
    return !facts_.keeps_state() || book_.HasState(rank, clock);
  }
  // The part, or why there is none.
  absl::Status AddShard(uint32_t shard, uint64_t clock, const absl::StatusOr<v1::SavedShard>& file,
                        Time now);
  // A cut has become whole: its parts, whose manifest is to be written now. `saving`: the last one
  // is under way, here and below.
  std::optional<CutParts> TakeWhole(bool saving) { return book_.TakeWhole(Needs(saving)); }
  // The manifest of these parts, but for what it has of the data.
  WriteManifest ManifestOf(const CutParts& parts, const v1::ModelSchema& schema,
                           const v1::JobLength& length) const;
  void Written(uint64_t clock, const absl::Status& status);
  // Cuts that were not complete in time fail.
  void Expire(Time now, bool saving);

  // ---- the last one
  // Where it is.
  void SetLast(uint64_t clock) { last_clock_ = clock; }
  uint64_t last_clock() const { return last_clock_; }
  // Nothing is to be saved: that clock's checkpoint exists.
  bool HaveLast() const { return newest() && *newest() >= last_clock_; }
  void BeginLast(uint64_t generation, Time now);
  // Shards have changed hands: parts were asked of who is not there any more.
  void AskAgain(uint64_t generation, Time now);
  // A shard was not where the cut is: it is asked once more, at the next tick.
  void AskLater() { ask_later_ = true; }
  bool TakeAskLater() { return std::exchange(ask_later_, false); }
  // An answer to the latest question.
  bool IsOfLast(uint64_t round, uint64_t clock) const {
    return round + 1 == saves_ && clock == last_clock_;
  }
  // Why there will be none; nothing if it can become whole yet. `aborted`: nobody waits for it.
  std::optional<std::string> LastFailed(bool aborted, Time now) const;

 private:
  CutBook::Needs Needs(bool saving) const;
  // Of a cut: "shard 1 (server 0), the state of worker 2"; empty if it is whole.
  std::string MissingParts(uint64_t clock, bool saving) const;

  const JobFacts& facts_;
  const Membership& ranks_;
  const ShardAssignment& shards_;
  Commands& commands_;
  CutBook book_;
  uint64_t last_clock_ = 0;
  // How often the last one was asked for (SaveAll), and until when it may take.
  uint64_t saves_ = 0;
  Time save_until_;
  bool ask_later_ = false;
};

}  // namespace leeway
