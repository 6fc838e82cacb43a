#include "launcher/commands/model_memory.h"

#include <memory>

#include "common/status.h"
#include "common/update/job_rule.h"
#include "config/length.h"

namespace leeway {
namespace {

// Weights and contribution; with several batches a clock one more, of which the gradients are added
// up.
uint64_t OfGradient(uint64_t steps_per_clock) { return steps_per_clock > 1 ? 3 : 2; }

// What a worker with steps of its own keeps, of which there are two: as it is, and as it was when
// the clock began (LocalTraining).
struct Local {
  uint64_t kept_twice = 0;
  uint64_t others = 0;
};

// Where it began, the local weights, the contribution; spread out also the gradient and what has
// left, and where it began is kept.
Local OfDelta(bool spread) {
  return spread ? Local{.kept_twice = 2, .others = 3} : Local{.kept_twice = 0, .others = 3};
}

// The local weights are kept, besides the centre and the gradient; spread out also the
// contribution.
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
  ASSIGN_OR_RETURN(const std::unique_ptr<UpdateRule> rule, MakeLocalRule(job));
  const uint64_t slots = rule->slots().size();
  const Local local = delta ? OfDelta(IsSpread(exchange)) : OfElastic(IsSpread(exchange));
  return local.others + 2 * (local.kept_twice + slots) + residuals;
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
