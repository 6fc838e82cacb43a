// The workers of one host that combine their contributions (workers.per_host: combine). The
// worker of the lowest rank is the leader. It adds the others' contributions to its own and sends
// the sum. The others leave theirs in shared memory (client/calls/contribution_memory.h) and tell the
// servers that they are part of the leader's (ParameterClient::PushPullCombined).
//
// The sum of a block at a clock is sum_i n_i g_i / sum_i n_i, made of sum_i n_i examples. Here i
// runs over the group's workers in rank order, and n_i is the number of worker i's examples. It is
// added up as a server would do it (common/update/combine.h), so the same contributions give the
// same bits.
//
// Averaged elements (common/update/averaging.h) use the same mean if all workers of the group have
// had the same number of batches. Then the mean moves the servers' values as far as the single
// contributions would. Some workers may have had fewer batches, at the end of their data. Then the
// leader sends
//
//   b = r + sum_i n_i k_i (b_i - r) / (k sum_i n_i)
//
// Here r is the value that the workers have read, k_i is the share of the way by which worker i's
// batches move it, and k is the share of the sum. In sync mode the servers are still at r, and
// compute r + k (b - r) from it. That is the result that the single contributions would have given.
//
// No worker acknowledges that it has read a contribution, because none has to. A worker's own
// request for block b and clock c is answered when clock c was applied to b. In sync mode that
// needs the leader's sum, too. A worker changes its contribution only when all blocks of the clock
// were answered. Until then the contribution stays in place, so:
// - A leader that is killed and restarted goes on at the first clock that some block still wants
//   from it. It computes that clock's contribution again, finds those of the others in place, and
//   sends the same sums. A block that was applied meanwhile, whose contributions may be gone
//   (kPassed), wants nothing more: the leader's message for it is a repetition that the servers
//   ignore.
// - Another worker that is killed and restarted computes the same bits and publishes them again. It
//   does not matter which of its lives the leader reads.
// - After the job has gone back to a checkpoint, nobody reads what was published in an older
//   generation, and the servers refuse sums of that generation.
// What a worker publishes is final: it is accumulated over the worker's batches, and includes its
// verdict about bad gradients (a contribution that is left out has 0 examples).
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

// One worker's part in its group, for one registration. Any thread may call TakeOffers, Waiting and
// Cancel. Only the thread that runs the exchange may call the rest.
class HostGroup {
 public:
  struct Options {
    // This worker's rank, and the job's generation.
    uint32_t rank = 0;
    uint64_t generation = 0;
    // By rising rank, including this worker.
    v1::HostGroup members;
    // Which elements are averaged, and by how many batches a contribution moves
    // them.
    std::vector<AveragedElements> averaged = {};
    ClockBatches batches = {};
    // How long the leader waits for the others, unless `goes_on`.
    double exchange_seconds = 600;
    std::function<bool()> goes_on = [] { return false; };
    std::function<Time()> now = [] { return std::chrono::steady_clock::now(); };
  };

  // Null if the worker is alone: then it sends its own contribution. `memory` and `layout` outlive
  // the group. INVALID_ARGUMENT if the worker is not among the members, and the errors of
  // ContributionMemory::Begin.
  static absl::StatusOr<std::unique_ptr<HostGroup>> Open(const Options& options,
                                                         const BlockLayout& layout,
                                                         ContributionMemory& memory);

  // This worker sends the sum.
  bool leads() const { return members_.front().rank == rank_; }

  // ---- for workers that do not lead
  // The memory in which the contribution must be.
  FloatBuffer Vector() const { return memory_.Vector(); }
  void Publish(uint64_t clock, uint64_t examples, BlockRange blocks) {
    memory_.Publish(clock, examples, blocks);
  }
  void Withdraw() { memory_.Withdraw(); }

  // ---- for the leader
  // What Combine found for a block.
  enum class Outcome {
    // A contribution is missing.
    kMissing,
    // The contribution vector now holds the block's sum.
    kCombined,
    // The servers have applied the clock, and want nothing more.
    kPassed,
  };
  struct Combined {
    Outcome outcome = Outcome::kMissing;
    // The examples of all workers together.
    uint64_t examples = 0;
    bool operator==(const Combined&) const = default;
  };
  // Call this before looking at what the others have published: it maps the memory of their new
  // lives. INVALID_ARGUMENT, naming both ranks, if the memory cannot be mapped although its owner
  // is alive.
  absl::Status Refresh();
  // Adds the others' contributions of a block to `contribution`, if all of them are there.
  // `contribution` is the whole vector, made of `examples`. `weights` is the whole vector as the
  // clock's steps have read it. INVALID_ARGUMENT if the memory of a worker holds values that cannot
  // be a contribution.
  absl::StatusOr<Combined> Combine(uint64_t clock, uint32_t block, uint64_t examples,
                                   std::span<float> contribution, std::span<const float> weights);
  // Pauses the leader between two looks. It has waited for the others since `began`.
  // DEADLINE_EXCEEDED, naming the missing workers, after exchange_seconds unless `goes_on`.
  // CANCELLED after Cancel().
  absl::Status Pause(uint64_t clock, Time began);

  // Takes over where the newest lives of the members have their memory.
  void TakeOffers(const v1::HostGroup& group);
  // Says which workers the leader waits for. Empty if it does not wait.
  std::string Waiting() const;
  // Ends all waiting, for good.
  void Cancel();

 private:
  struct Member {
    uint32_t rank = 0;
    // Offered by the newest life.
    v1::MemoryOffer offer;
    // The view of the newest life that could be mapped.
    std::optional<ContributionView> view;
    bool mapped = false;
    // Why the memory could not be mapped, since when, and when to try again.
    absl::Status refusal;
    Time refused;
    Time again;
  };
  HostGroup(const Options& options, const BlockLayout& layout, ContributionMemory& memory);

  void TakeNewOffers();
  absl::Status Map(Member& member);
  // Looks how far the others are with a block, and fills in found_.
  absl::StatusOr<Outcome> Look(uint64_t clock, uint32_t block);
  void Miss(uint32_t rank);
  // The examples of all workers for the block in found_.
  uint64_t ExamplesOfAll() const;
  // For a sum that is not finite: names the worker whose contribution makes it so.
  absl::Status NotFinite(uint64_t clock, uint32_t block, std::span<const float> contribution) const;
  // Writes the block's sum to sum_. False if a contribution changed meanwhile.
  bool Sum(uint64_t clock, uint32_t block, std::span<const float> contribution,
           std::span<const float> weights);
  // Sums some of the block's elements, with coefficients in rank order.
  void Sum(const ElementRange& block, const ElementRange& elements,
           const std::vector<float>& coefficients, std::span<const float> contribution);
  // Moves the block's averaged elements as far as the single contributions would.
  void SumAveraged(uint64_t clock, const ElementRange& block, std::span<const float> contribution,
                   std::span<const float> weights);
  // Text such as "waiting for workers 2, 3 of this host".
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

  // In rank order, including this worker. Used by the exchange's thread only.
  std::vector<Member> members_;
  // By member, for the block looked at. This worker's entry has its examples only.
  std::vector<ContributionView::Found> found_;
  FloatBuffer sum_;
  // Ranks that were missing for some block at the latest look.
  std::vector<uint32_t> missing_;

  mutable Mutex mutex_;
  CondVar changed_;
  // Offers that Refresh has not taken up yet.
  std::optional<v1::HostGroup> offers_ GUARDED_BY(mutex_);
  std::string waiting_ GUARDED_BY(mutex_);
  bool cancelled_ GUARDED_BY(mutex_) = false;
};

}  // namespace leeway
