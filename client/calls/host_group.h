// The workers of one host that combine their contributions (workers.per_host: combine). The one of
// the lowest rank, the leader, adds the others' to its own and sends the sum; the others leave
// theirs in shared memory (client/calls/contribution_memory.h) and tell the servers that they are part of
// the leader's (ParameterClient::PushPullCombined).
//
// The sum of a block at a clock is sum_i n_i g_i / sum_i n_i, made of sum_i n_i examples, where i
// are the group's workers in rank order and n_i worker i's examples. It is added up as a server
// would (common/update/combine.h), so the same contributions give the same bits.
//
// Averaged elements (common/update/averaging.h) are the same mean where the servers move them by it
// as far as by the single contributions: that is where all workers of the group have had as many
// batches. Where some have had fewer, at the end of their data, the leader sends
//
//   b = r + sum_i n_i k_i (b_i - r) / (k sum_i n_i)
//
// where r is the value that the workers have read, k_i is the share of the way by which worker i's
// batches move it, and k that of the sum. The servers, which are still at r in sync mode, make
// r + k (b - r) of it: what the single contributions would have made.
//
// Nobody acknowledges that a contribution was read, because none is needed. A worker's own request
// for block b and clock c is answered when clock c was applied to b, and in sync mode that needs
// the leader's sum, too. A worker changes its contribution only when all blocks of the clock were
// answered. Until then the contribution is where it was, so:
// - A leader that is killed and restarted goes on at the first clock that some block still wants of
//   it. It computes that clock's contribution once more, finds those of the others in place, and
//   sends the same sums. A block that was applied meanwhile, whose contributions may be gone
//   (kPassed), wants nothing more: the leader's message for it is a repetition that the servers
//   ignore.
// - Another worker that is killed and restarted computes the same bits and publishes them again.
//   It does not matter which of its lives the leader reads.
// - After the job has gone back to a checkpoint, nobody reads what was published in an older
//   generation, and the servers refuse sums of that generation.
// What a worker publishes is final: accumulated over its batches, and with its verdict about bad
// gradients (a contribution that is left out has 0 examples).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/calls/block_range.h"
#include "client/calls/contribution_memory.h"
#include "common/blocks.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/update/averaging.h"
#include "common/update/clock_batches.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// One worker's place in its group, for one registration. TakeOffers, Waiting and Cancel may be
// called by any thread, everything else by the one that runs the exchange.
class HostGroup {
 public:
  struct Options {
    // Of this worker, and of the job.
    uint32_t rank = 0;
    uint64_t generation = 0;
    // By rising rank; this worker is among them.
    v1::HostGroup members;
    // Which elements are averaged, and by how many batches a contribution moves them.
    std::vector<AveragedElements> averaged = {};
    ClockBatches batches = {};
    // How long the leader waits for the others, unless `goes_on`.
    double exchange_seconds = 600;
    std::function<bool()> goes_on = [] { return false; };
    std::function<Time()> now = [] { return std::chrono::steady_clock::now(); };
  };

  // Null if the worker is alone, so that it hands in for itself. `memory` and `layout` outlive the
  // group. INVALID_ARGUMENT if the worker is not among the members. ContributionMemory::Begin's
  // errors.
  static absl::StatusOr<std::unique_ptr<HostGroup>> Open(const Options& options,
                                                         const BlockLayout& layout,
                                                         ContributionMemory& memory);

  // This worker sends for all.
  bool leads() const { return members_.front().rank == rank_; }

  // ---- those who do not lead
  // Where the contribution has to lie.
  FloatBuffer Vector() const { return memory_.Vector(); }
  void Publish(uint64_t clock, uint64_t examples, BlockRange blocks) {
    memory_.Publish(clock, examples, blocks);
  }
  void Withdraw() { memory_.Withdraw(); }

  // ---- the leader
  // What became of a block.
  enum class Outcome {
    // Somebody's contribution is missing.
    kMissing,
    // The contribution is the sum now.
    kCombined,
    // The servers have applied the clock; they want nothing more.
    kPassed,
  };
  struct Combined {
    Outcome outcome = Outcome::kMissing;
    // Of all workers together.
    uint64_t examples = 0;
    bool operator==(const Combined&) const = default;
  };
  // Begins a look at what the others have published: maps the memory of their new lives.
  // INVALID_ARGUMENT, naming both ranks, if memory cannot be mapped and its owner is alive.
  absl::Status Refresh();
  // Adds the others' contributions of a block to `contribution`, the whole vector, which is made
  // of `examples`, if all are there. `weights`: the whole vector, as the clock's steps have read
  // it. INVALID_ARGUMENT if what lies in a worker's memory cannot be a contribution.
  absl::StatusOr<Combined> Combine(uint64_t clock, uint32_t block, uint64_t examples,
                                   std::span<float> contribution, std::span<const float> weights);
  // A pause between two looks, of a leader that has waited for the others since `began`.
  // DEADLINE_EXCEEDED, naming who is missing, after exchange_seconds unless `goes_on`. CANCELLED
  // after Cancel().
  absl::Status Pause(uint64_t clock, Time began);

  // Where the members' newest lives have their memory.
  void TakeOffers(const v1::HostGroup& group);
  // Whom the leader waits for, in words; empty if it does not wait.
  std::string Waiting() const;
  // Ends waiting, for good.
  void Cancel();

 private:
  struct Member {
    uint32_t rank = 0;
    // Of the newest life.
    v1::MemoryOffer offer;
    // Of the newest life that could be mapped.
    std::optional<ContributionView> view;
    bool mapped = false;
    // Why it could not be mapped, since when, and when to try again.
    absl::Status refusal;
    Time refused;
    Time again;
  };
  HostGroup(const Options& options, const BlockLayout& layout, ContributionMemory& memory);

  void TakeNewOffers();
  absl::Status Map(Member& member);
  // Fills in found_; where the others are with a block.
  absl::StatusOr<Outcome> Look(uint64_t clock, uint32_t block);
  void Miss(uint32_t rank);
  // Of the block looked at.
  uint64_t ExamplesOfAll() const;
  // Of a sum that is not: names the worker whose contribution makes it so.
  absl::Status NotFinite(uint64_t clock, uint32_t block, std::span<const float> contribution) const;
  // Writes the block's sum to sum_; false if a contribution changed meanwhile.
  bool Sum(uint64_t clock, uint32_t block, std::span<const float> contribution,
           std::span<const float> weights);
  // The same of some of the block's elements, by coefficients in rank order.
  void Sum(const ElementRange& block, const ElementRange& elements,
           const std::vector<float>& coefficients, std::span<const float> contribution);
  // Moves the block's averaged elements as far as the single contributions would.
  void SumAveraged(uint64_t clock, const ElementRange& block, std::span<const float> contribution,
                   std::span<const float> weights);
  // "waiting for workers 2, 3 of this host".
  std::string Missing() const;

  const uint32_t rank_;
  const uint64_t generation_;
  const std::vector<AveragedElements> averaged_;
  const ClockBatches batches_;
  const Duration limit_;
  const std::function<bool()> goes_on_;
  const std::function<Time()> now_;
  const BlockLayout& layout_;
  ContributionMemory& memory_;

  // In rank order, this worker among them. Of the exchange's thread.
  std::vector<Member> members_;
  // By member: the block looked at. This worker's has its examples only.
  std::vector<ContributionView::Found> found_;
  FloatBuffer sum_;
  // Ranks that the latest look found missing, for any block.
  std::vector<uint32_t> missing_;

  mutable Mutex mutex_;
  CondVar changed_;
  // Not taken up yet.
  std::optional<v1::HostGroup> offers_ GUARDED_BY(mutex_);
  std::string waiting_ GUARDED_BY(mutex_);
  bool cancelled_ GUARDED_BY(mutex_) = false;
};

}  // namespace leeway
