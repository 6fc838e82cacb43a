#include "launcher/plan/model_memory.h"

#include <memory>

#include "common/status.h"
#include "common/update/job_rule.h"
#include "config/length.h"
#include "config/topology.h"

namespace leeway {
namespace {

// Returns the number of vectors of a gradient exchange: the weights and the contribution. With
// several batches in a clock there is one more vector, because the gradients are summed.
uint64_t OfGradient(uint64_t steps_per_clock) { return steps_per_clock > 1 ? 3 : 2; }

// The number of vectors of a worker with local steps. LocalTraining has two copies of the vectors
// in `kept_twice`: the current state, and the state at the start of the clock.
struct Local {
  uint64_t kept_twice = 0;
  uint64_t others = 0;
};

// Returns the vectors of a delta exchange: the start weights, the local weights and the
// contribution. If the exchange is spread over the clock, there are also the gradient and the
// values that have been sent, and the start weights and the local weights are kept twice.
Local OfDelta(bool spread) {
  return spread ? Local{.kept_twice = 2, .others = 3} : Local{.kept_twice = 0, .others = 3};
}

// The vectors of a delta exchange whose worker keeps its weights, as in sync gossip: the local
// weights, which are kept twice, the contribution and the gradient.
constexpr Local kOfOwnWeights = {.kept_twice = 1, .others = 2};

// Returns the vectors of an elastic exchange: the local weights, which are kept twice, the centre
// and the gradient. If the exchange is spread over the clock, there is also the contribution.
Local OfElastic(bool spread) { return {.kept_twice = 1, .others = spread ? 3u : 2u}; }

}  // namespace

absl::StatusOr<uint64_t> ServerSlots(const v1::TrainingJob& job) {
  ASSIGN_OR_RETURN(const std::unique_ptr<UpdateRule> rule, MakeServerRule(job));
  return rule->slots().size();
}

absl::StatusOr<uint64_t> VectorsOfWorker(const v1::TrainingJob& job, uint64_t steps_per_clock,
                                         bool keeps_residual) {
  const v1::Exchange& exchange = job.exchange();
  const uint64_t residuals = keeps_residual ? kResiduals : 0;
  if (!exchange.has_delta() && !exchange.has_elastic()) {
    return OfGradient(steps_per_clock) + residuals;
  }
  const bool delta = exchange.has_delta();
  const bool own = IsGossip(job) && job.consistency().mode() == v1::CONSISTENCY_MODE_SYNC;
  ASSIGN_OR_RETURN(const std::unique_ptr<UpdateRule> rule, MakeLocalRule(job));
  const uint64_t slots = rule->slots().size();
  const Local local = own     ? kOfOwnWeights
                      : delta ? OfDelta(IsSpread(exchange))
                              : OfElastic(IsSpread(exchange));
  return local.others + 2 * (local.kept_twice + slots) + residuals;
}

uint64_t VectorsOfPeers(const v1::TrainingJob& job) {
  if (!WorkersFetch(job)) return 0;
  // The sums and the new weights that it passes on, of two clocks, and the means that it sends.
  if (!IsGossip(job)) return 5;
  // The weights that it publishes, of two clocks; or those that others meet, and how they were
  // before the newest meetings.
  constexpr uint64_t kShown = 2;
  // The mean, the change that is sent, and what a call has brought.
  return kShown + 3;
}

uint64_t ReplyBytes(const Codec& weights, uint64_t elements) {
  if (weights.encoding() == v1::ENCODING_RAW) return 0;
  if (CarriesChanges(weights.encoding())) return 2 * elements * sizeof(float);
  return 2 * weights.MaxBytes(elements);
}

uint64_t ReplicaReplyBytes(const Codec& weights, uint64_t elements) {
  return CarriesChanges(weights.encoding()) ? elements * sizeof(float) : 0;
}

}  // namespace leeway
