// The job's checkpoints: the cuts during training, and the last cut at the end. Owns the parts that
// have arrived (cut_book.h). The core must report here each part that arrives, and whether each
// manifest was written.
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
  // All arguments must outlive this object.
  Checkpoints(const JobFacts& facts, const Membership& ranks, const ShardAssignment& shards,
              Commands& commands);

  const CutBook& book() const { return book_; }
  std::optional<uint64_t> newest() const { return book_.newest(); }
  // Returns the clock that every rank has certainly reached after a restart. Outside of sync mode
  // it is 0, because a cut's clock is a mean.
  uint64_t CertainClock() const { return facts_.sync() ? newest().value_or(0) : 0; }

  // Expect, GoBack and AddState do the same as the functions of CutBook.
  void Expect(uint32_t shards, bool states) { book_.Expect(shards, states); }
  void GoBack() { book_.GoBack(); }
  absl::Status AddState(uint64_t clock, uint32_t rank, const v1::SavedShard& file) {
    return book_.AddState(clock, rank, file);
  }
  // Returns true if the rank's state at `clock` or later has arrived, or if the rank keeps no
  // state.
  bool HasState(uint32_t rank, uint64_t clock) const {
    return !facts_.keeps_state() || book_.HasState(rank, clock);
  }
  // Adds a shard's part of a cut, or the reason why that part is missing.
  absl::Status AddShard(uint32_t shard, uint64_t clock, const absl::StatusOr<v1::SavedShard>& file,
                        Time now);
  // Returns the parts of a cut that has become complete; the caller must then write its manifest.
  // Here and below, `saving` is true if the last cut is in progress.
  std::optional<CutParts> TakeWhole(bool saving) { return book_.TakeWhole(Needs(saving)); }
  // Makes the manifest of these parts, without the progress of leased data.
  WriteManifest ManifestOf(const CutParts& parts, const v1::ModelSchema& schema,
                           const v1::JobLength& length) const;
  void Written(uint64_t clock, const absl::Status& status);
  // Fails cuts that were not complete in time.
  void Expire(Time now, bool saving);

  // ---- the last cut
  // Sets the clock of the last cut.
  void SetLast(uint64_t clock) { last_clock_ = clock; }
  uint64_t last_clock() const { return last_clock_; }
  // True if a checkpoint of the last cut's clock exists already, so nothing is left to save.
  bool HaveLast() const { return newest() && *newest() >= last_clock_; }
  void BeginLast(uint64_t generation, Time now);
  // Asks the owners of the shards again, because some shards have new owners since the last
  // request.
  void AskAgain(uint64_t generation, Time now);
  // Notes that a shard has not reached the last cut's clock, so that the owners are asked again at
  // the next tick.
  void AskLater() { ask_later_ = true; }
  bool TakeAskLater() { return std::exchange(ask_later_, false); }
  // Returns true if an answer with this round and clock belongs to the latest request for the last
  // cut.
  bool IsOfLast(uint64_t round, uint64_t clock) const {
    return round + 1 == saves_ && clock == last_clock_;
  }
  // Returns why the last cut will never be complete; nullopt if it may still become complete.
  // `aborted` is true if nobody waits for the last cut.
  std::optional<std::string> LastFailed(bool aborted, Time now) const;

 private:
  CutBook::Needs Needs(bool saving) const;
  // Returns the parts that a cut lacks, such as "shard 1 (server 0), the state of worker 2"; empty
  // if the cut is complete.
  std::string MissingParts(uint64_t clock, bool saving) const;

  const JobFacts& facts_;
  const Membership& ranks_;
  const ShardAssignment& shards_;
  Commands& commands_;
  CutBook book_;
  uint64_t last_clock_ = 0;
  // The number of SaveAll commands for the last cut.
  uint64_t saves_ = 0;
  // The deadline of the latest SaveAll command.
  Time save_until_;
  bool ask_later_ = false;
};

}  // namespace leeway
