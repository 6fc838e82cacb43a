// Decides how far an update moves a block: its learning rate, its share of a clock, and the weight
// of each contribution.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/update/clock_batches.h"
#include "common/update/schedule.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"
#include "server/core/block_core.h"
#include "server/shard/request_check.h"
#include "server/store/block_store.h"

namespace leeway {

// Thread-safe, because it never changes.
class UpdateScale {
 public:
  UpdateScale(const v1::TrainingJob& job, const v1::JobLength& length);

  bool sync() const { return sync_; }
  // Returns true if the exchange is elastic and so has no learning rate.
  bool elastic() const { return !schedule_.has_value(); }
  // Returns true if a contribution may be the sum of several workers' contributions.
  bool combines() const { return combines_; }
  uint32_t workers() const { return workers_; }

  // Computes the number, the learning rate and the share of the next update. `clock` is the clock
  // of the contribution. But if the job's length counts the clocks of all workers together, the
  // mean clock decides, so that fast and slow workers have the same rate.
  UpdateStep StepOf(const BlockProgress& progress, uint32_t live, uint64_t clock) const;
  // Returns the weights of those contributions that are not part of another one. In sync mode the
  // aggregate is the mean over all examples of its contributions; with equal weights it is the mean
  // over the workers that have any examples. Outside of sync a contribution is applied alone. The
  // weight of such a contribution is its number of examples divided by the ordinary number, or 1 if
  // all contributions have equal weights. So W workers train W times as much as one worker.
  // Averaged elements are a mean over all W workers, so each contribution moves them by a share of
  // 1/W.
  ContributionWeights WeightsOf(const std::vector<Contribution>& contributions) const;

 private:
  // Returns the number of batches from which the contribution was computed.
  double BatchesOf(const Contribution& contribution) const;

  const bool sync_;
  const bool gossip_;
  const bool combines_;
  // True if all contributions with any examples have the same weight.
  const bool equal_weights_;
  const uint32_t workers_;
  const bool ends_by_sum_;
  const ClockBatches batches_;
  // The number of examples of an ordinary contribution. Such a contribution has weight 1 when it is
  // applied alone.
  const double nominal_examples_;
  // Absent for an elastic exchange.
  const std::optional<Schedule> schedule_;
};

}  // namespace leeway
