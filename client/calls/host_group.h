// The workers of one host that combine their contributions (workers.per_host: combine). The worker
// with the lowest rank is the leader. It adds the others' contributions to its own and sends the
// sum. The others leave their contributions in shared memory (client/calls/contribution_memory.h)
// and tell the servers that the leader's sum includes them (ParameterClient::PushPullCombined).
//
// The group's contribution of a block at a clock is sum_i n_i g_i / sum_i n_i, made of sum_i n_i
// examples. Here i runs over the group's workers in rank order, g_i is worker i's contribution, and
// n_i is the number of its examples. The leader adds as a server would do
// (common/update/combine.h), so the same contributions give the same bits.
//
// Averaged elements (common/update/averaging.h) use the same mean if all workers of the group have
// had the same number of batches: it moves the servers' values as far as the single contributions
// would. At the end of their data some workers may have had fewer batches than others. Then the
// leader sends
//
//   b = r + sum_i n_i k_i (b_i - r) / (k sum_i n_i)
//
// Here r is the value that the workers have read, and b_i is worker i's value. The batches of
// worker i move r by the share k_i of the way from r to b_i, and the sum moves r by the share k of
// the way to b. In sync mode the servers are still at r, and compute r + k (b - r) from b. The
// single contributions would have given the same result.
//
// The leader need not acknowledge that it has read a contribution. The servers answer a worker's
// own request for block b and clock c when clock c was applied to b. In sync mode that needs the
// leader's sum, too. A worker changes its contribution only after all blocks of the clock were
// answered. Until then the contribution stays in place. This has consequences:
// - A leader that is killed and restarted goes on at the first clock of which the servers still
//   lack a contribution from it. It computes its contribution of that clock again, finds the
//   others' contributions in place, and sends the same sums. If the servers have applied a block
//   meanwhile, the others' contributions to it may be gone (kPassed), but nobody needs them: the
//   servers ignore the leader's message for that block as a repetition.
// - Any other worker that is killed and restarted computes the same bits and publishes them again.
//   So the leader may read the contribution of either life.
// - After the job has gone back to a checkpoint, nobody reads what was published in an older
//   generation, and the servers refuse sums of that generation.
// A published contribution is final: the worker has accumulated it over all its batches and has
// checked it for bad gradients. (A contribution that is left out has 0 examples.)
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
#include "client/calls/leader_wait.h"
#include "common/blocks.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/update/averaging.h"
#include "common/update/clock_batches.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// One worker's membership in its group, for one registration. Any thread may call TakeOffers,
// Waiting and Cancel. Only the thread that runs the exchange may call the rest.
class HostGroup {
 public:
  struct Options {
    // This worker's rank, and the job's generation.
    uint32_t rank = 0;
    uint64_t generation = 0;
    // The workers of the group by rising rank, including this worker.
    v1::HostGroup members;
    // The averaged elements, and the number of batches of each clock.
    std::vector<AveragedElements> averaged = {};
    ClockBatches batches = {};
    // How long the leader waits for the others. While `goes_on` returns true, it waits longer.
    double exchange_seconds = 600;
    std::function<bool()> goes_on = [] { return false; };
    std::function<Time()> now = [] { return std::chrono::steady_clock::now(); };
  };

  // Returns null if no other worker is in the group; the worker then sends its own contribution.
  // `memory` and `layout` outlive the group. Returns INVALID_ARGUMENT if the worker is not among
  // the members. Returns the errors of ContributionMemory::Begin.
  static absl::StatusOr<std::unique_ptr<HostGroup>> Open(const Options& options,
                                                         const BlockLayout& layout,
                                                         ContributionMemory& memory);

  // Returns true if this worker is the leader, which sends the sum.
  bool leads() const { return members_.front().rank == rank_; }

  // ---- for workers that do not lead: the vector into which they must write their contribution.
  FloatBuffer Vector() const { return memory_.Vector(); }
  void Publish(uint64_t clock, uint64_t examples, BlockRange blocks) {
    memory_.Publish(clock, examples, blocks);
  }
  void Withdraw() { memory_.Withdraw(); }

  // ---- for the leader: the result of Combine for a block.
  enum class Outcome {
    // Some worker has not published its contribution yet.
    kMissing,
    // The contribution vector now holds the block's sum.
    kCombined,
    // The servers have already applied the clock to this block.
    kPassed,
  };
  struct Combined {
    Outcome outcome = Outcome::kMissing;
    // The number of examples of all workers together.
    uint64_t examples = 0;
    bool operator==(const Combined&) const = default;
  };
  // Maps the memory of the members' new lives. Call this before Combine. Returns INVALID_ARGUMENT,
  // naming both ranks, if the memory cannot be mapped although its owner is alive.
  absl::Status Refresh();
  // Adds the other workers' contributions of a block to `contribution`, if they have published all
  // of them. `contribution` is this worker's whole contribution vector, made of `examples`
  // examples. `weights` is the whole vector of weights that the clock's steps have read. Returns
  // INVALID_ARGUMENT if the memory of a worker holds values that cannot be a contribution.
  absl::StatusOr<Combined> Combine(uint64_t clock, uint32_t block, uint64_t examples,
                                   std::span<float> contribution, std::span<const float> weights);
  // Pauses the leader between two calls of Combine. The leader began to wait for the others at
  // `began`. Returns DEADLINE_EXCEEDED, naming the missing workers, if the leader has waited for
  // exchange_seconds and `goes_on` returns false. Returns CANCELLED after Cancel().
  absl::Status Pause(uint64_t clock, Time began);

  // As in LeaderWait. The next Refresh maps the offered memory.
  void TakeOffers(const v1::HostGroup& group) { wait_.TakeOffers(group); }
  std::string Waiting() const { return wait_.Waiting(); }
  void Cancel() { wait_.Cancel(); }

 private:
  struct Member {
    uint32_t rank = 0;
    // The memory that the newest life offers.
    v1::MemoryOffer offer;
    // The view of the newest life that could be mapped.
    std::optional<ContributionView> view;
    bool mapped = false;
    // The error of the latest attempt to map the memory, the time of the first failed attempt, and
    // the time of the next one.
    absl::Status refusal;
    Time refused;
    Time again;
  };
  HostGroup(const Options& options, const BlockLayout& layout, ContributionMemory& memory);

  void TakeNewOffers();
  absl::Status Map(Member& member);
  // Finds out whether the others have published a block, and fills in found_.
  absl::StatusOr<Outcome> Look(uint64_t clock, uint32_t block);
  void Miss(uint32_t rank);
  // The number of examples of all workers for the block in found_.
  uint64_t ExamplesOfAll() const;
  // Returns the error for a sum that is not finite. It names the worker whose contribution is not
  // finite, if there is one.
  absl::Status NotFinite(uint64_t clock, uint32_t block, std::span<const float> contribution) const;
  // Writes the block's sum to sum_. Returns false if a contribution changed meanwhile.
  bool Sum(uint64_t clock, uint32_t block, std::span<const float> contribution,
           std::span<const float> weights);
  // Writes the sum of `elements`, which are part of `block`, with the coefficients in rank order.
  void Sum(const ElementRange& block, const ElementRange& elements,
           const std::vector<float>& coefficients, std::span<const float> contribution);
  // Writes values for the block's averaged elements that move the servers' values as far as the
  // single contributions would.
  void SumAveraged(uint64_t clock, const ElementRange& block, std::span<const float> contribution,
                   std::span<const float> weights);
  // Returns a string such as "waiting for workers 2, 3 of this host".
  std::string Missing() const;

  const uint32_t rank_;
  const uint64_t generation_;
  const std::vector<AveragedElements> averaged_;
  const ClockBatches batches_;
  const BlockLayout& layout_;
  ContributionMemory& memory_;

  // The members in rank order, including this worker. Used by the exchange's thread only.
  std::vector<Member> members_;
  // By member: what Look() has found for its block. This worker's own entry has only the examples.
  std::vector<ContributionView::Found> found_;
  FloatBuffer sum_;
  // The ranks that had not published some block when the leader last looked.
  std::vector<uint32_t> missing_;
  LeaderWait wait_;
};

}  // namespace leeway
