// A delta or elastic exchange whose blocks leave over the course of the clock's H local steps
// instead of all at the end of the clock. No step sends more than an H-th of the model, and the
// exchange is hidden behind the steps. For delta this is Streaming DiLoCo (Douillard et al. 2025,
// arXiv:2501.18512, algorithm 2), with an overlap tau of one step and a mixing factor of 1. Elastic
// averaging uses the same idea.
//
// In each clock the following happens to each group of neighbouring blocks (spread_plan.h). x is
// the local weights now, and s is the local weights at the moment when the group left:
//   delta:    the group leaves as x_start - s, where x_start is the servers' latest answer;
//             after the next local step x = answer + (x - s), which keeps what that step moved.
//   elastic:  the group leaves as s; after the next step x -= alpha (s - answer).
// After the clock's last step the worker waits for the groups that leave then. So between clocks
// nothing is under way, and all blocks are at the same clock. The number of the step decides when
// the worker uses an answer, not the time at which the answer arrives. So sync stays deterministic.
// The contribution's weight is the number of examples since the group last left.
//
// Between clocks the worker keeps its local weights, the optimizer's slots, and the number of
// examples since each group left. If a group left early, its weights have changed since. A delta
// worker keeps the answers as well. When such a worker resumes outside of sync, the servers have
// other weights. The difference comes from other workers and must not count as this worker's
// change.
//
// The averaged elements of a delta worker are simpler. They hold the weighted mean of the batches
// since they last left, and this mean is sent (common/update/averaging.h). The servers' answer does
// not change them.

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "common/buffer.h"
#include "common/status.h"
#include "exchange/weight_formulas.h"
#include "worker/compute/flat_vector.h"
#include "worker/training/clock_runner.h"
#include "worker/training/local_runner.h"
#include "worker/training/spread_plan.h"
#include "worker/training/steps.h"

namespace leeway {
namespace {

class SpreadRunner : public LocalRunner {
 public:
  // Each vector is as long as the model.
  struct Vectors {
    // For elastic: the servers' latest answer. A delta worker keeps the answers in its state
    // instead.
    FlatVector centre;
    FlatVector gradient;
    // For delta: the local weights at the time when each group left. For elastic: the contribution,
    // which consists of these weights.
    FlatVector left;
    FlatVector contribution;
  };
  SpreadRunner(const RunnerContext& context, LocalTraining training, SpreadPlan plan,
               Vectors vectors)
      : LocalRunner(context, std::move(training)),
        plan_(std::move(plan)),
        averages_(AveragesByGroup()),
        vectors_(std::move(vectors)) {}

  // Without a saved state the worker starts at the servers' weights.
  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    const bool goes_on = training().loaded() && !alpha();
    FloatBuffer before(goes_on ? answered().size() : 0);
    if (goes_on) {
      RETURN_IF_ERROR(answered().Down());
      std::memcpy(before.data(), answered().host().data(), before.span().size_bytes());
    }
    ASSIGN_OR_RETURN(const uint64_t version,
                     ReadWeights(context().carrier, clock, answered().host()));
    RETURN_IF_ERROR(answered().Up());
    if (!training().loaded()) {
      backend().Copy(local().size(), answered().device().data(), local().device().data());
    }
    if (goes_on) RETURN_IF_ERROR(Rebase(before.span()));
    training().Keep(clock);
    return version;
  }

  absl::StatusOr<ClockReport> Run(const ClockSpan& span) override {
    ClockReport report;
    uint64_t merged = 0;
    uint64_t sent = 0;
    for (uint64_t done = 1; done <= span.steps; ++done) {
      RETURN_IF_ERROR(LocalStep(span.clock, span.first_step + done - 1, report));
      RETURN_IF_ERROR(context().carrier.AwaitAll(Time::max()).status());
      for (; merged < sent; ++merged) RETURN_IF_ERROR(Merge(plan_.Elements(merged)));
      for (; sent < plan_.groups() && plan_.LeavesAfter(sent, span.steps) <= done; ++sent) {
        RETURN_IF_ERROR(Send(span.clock, sent));
      }
    }
    RETURN_IF_ERROR(context().carrier.AwaitAll(Time::max()).status());
    for (; merged < sent; ++merged) RETURN_IF_ERROR(Merge(plan_.Elements(merged)));
    context().listener.OnComplete(context().carrier.End());
    training().Keep(span.clock + 1);
    return report;
  }

 private:
  FlatVector& local() { return training().own(0); }
  FlatVector& answered() override { return alpha() ? vectors_.centre : training().own(1); }

  // Moves the local weights from the old answers, `before`, to the new ones. The worker's own
  // change stays the same. If the answers are the same, the bits of the weights stay the same, too.
  absl::Status Rebase(std::span<const float> before) {
    ASSIGN_OR_RETURN(FloatBuffer x, local().Copy());
    const std::span<const float> now = answered().host();
    for (size_t i = 0; i < context().schema.trained(); ++i) {
      if (now[i] != before[i]) x.data()[i] += now[i] - before[i];
    }
    return local().Set(x.span());
  }

  // Averaged elements, each with its group.
  using GroupAverages = std::vector<std::pair<uint64_t, AveragedElements>>;
  GroupAverages AveragesByGroup() const {
    GroupAverages averages;
    const auto all = AveragedElementsOf(context().schema);
    for (uint64_t group = 0; group < plan_.groups(); ++group) {
      for (const AveragedElements& elements : Within(all, plan_.Elements(group))) {
        averages.emplace_back(group, elements);
      }
    }
    return averages;
  }

  absl::Status LocalStep(uint64_t clock, uint64_t step, ClockReport& report) {
    if (report.none_left) return absl::OkStatus();
    constexpr double kRunning = std::numeric_limits<double>::infinity();
    std::vector<LocalAverage> averages;
    for (const auto& [group, elements] : averages_) {
      const uint64_t examples = training().counts()[group];
      averages.push_back({elements, alpha() ? kRunning : Batches(context(), examples)});
    }
    ASSIGN_OR_RETURN(const StepResult result,
                     training().Step(clock, step, local().device(), vectors_.gradient.device(),
                                     averages, report));
    for (uint64_t& examples : training().counts()) examples += result.examples;
    return absl::OkStatus();
  }

  // Computes the contribution on the device.
  void MakeContribution(const ElementRange& range) {
    Backend& backend = this->backend();
    const float* const x = local().device().data();
    float* const out = vectors_.contribution.device().data();
    if (alpha()) return backend.Copy(range.count, x + range.offset, out + range.offset);
    MakeDelta(backend, range, context().schema.trained(), answered().device().data(), x, out);
    backend.Copy(range.count, x + range.offset, vectors_.left.device().data() + range.offset);
  }

  absl::Status Send(uint64_t clock, uint64_t group) {
    const ElementRange range = plan_.Elements(group);
    MakeContribution(range);
    ASSIGN_OR_RETURN(
        const bool known_finite,
        training().KnownFinite(vectors_.contribution.device().subspan(range.offset, range.count)));
    const std::span<float> contribution = vectors_.contribution.host();
    if (!known_finite) {
      RETURN_IF_ERROR(vectors_.contribution.Down(range));
      RETURN_IF_ERROR(
          Annotate(CheckFinite(context().schema, alpha() ? "the local weight" : "the change",
                               range.offset, contribution.subspan(range.offset, range.count)),
                   Who(context(), clock)));
    }
    const BlockRange blocks = plan_.Blocks(group);
    const uint64_t examples = std::exchange(training().counts()[group], 0);
    RETURN_IF_ERROR(backend().Await(
        StartContribution(context(), clock, examples, blocks, range, vectors_.contribution)));
    if (group == 0) {
      RETURN_IF_ERROR(context().listener.OnBegin(clock));
      context().carrier.Begin(clock);
    }
    context().carrier.Contribute(blocks, examples, nullptr, contribution, answered().host());
    return absl::OkStatus();
  }

  absl::Status Merge(const ElementRange& range) {
    Backend& backend = this->backend();
    RETURN_IF_ERROR(answered().Up(range));
    float* const x = local().device().data();
    const float* const answer = answered().device().data();
    if (alpha()) {
      MoveToCentre(backend, range, *alpha(), vectors_.contribution.device().data(), answer, x);
      return absl::OkStatus();
    }
    const uint64_t begin = range.offset;
    const uint64_t end = std::clamp(context().schema.trained(), begin, range.end());
    backend.AddDifference(end - begin, 1, x + begin, vectors_.left.device().data() + begin,
                          answer + begin, x + begin);
    return absl::OkStatus();
  }

  const SpreadPlan plan_;
  const GroupAverages averages_;
  Vectors vectors_;
};

absl::StatusOr<SpreadRunner::Vectors> MakeVectors(const RunnerContext& context, bool elastic) {
  const size_t total = context.schema.total();
  SpreadRunner::Vectors vectors;
  ASSIGN_OR_RETURN(vectors.gradient, FlatVector::OnDevice(context.backend, total));
  ASSIGN_OR_RETURN(vectors.contribution,
                   FlatVector::Twins(context.backend, context.carrier.MakeVector()));
  FlatVector& own = elastic ? vectors.centre : vectors.left;
  ASSIGN_OR_RETURN(own, elastic ? FlatVector::Twins(context.backend, FloatBuffer(total))
                                : FlatVector::OnDevice(context.backend, total));
  return vectors;
}

// Makes the vectors that the exchange keeps: the local weights and, for delta, the servers' latest
// answer.
absl::StatusOr<LocalTraining::Own> OwnOf(const RunnerContext& context, bool elastic,
                                         uint64_t groups) {
  LocalTraining::Own own{.exchange = elastic ? "elastic" : "delta", .names = {"weights"}};
  const size_t total = context.schema.total();
  ASSIGN_OR_RETURN(own.vectors.emplace_back(), FlatVector::OnDevice(context.backend, total));
  if (!elastic) {
    own.names.emplace_back("answers");
    ASSIGN_OR_RETURN(own.vectors.emplace_back(),
                     FlatVector::Twins(context.backend, FloatBuffer(total)));
  }
  own.counts = groups;
  return own;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClockRunner>> MakeSpreadRunner(const RunnerContext& context) {
  const bool elastic = context.job.exchange().has_elastic();
  ASSIGN_OR_RETURN(LocalOptimizer optimizer,
                   LocalOptimizer::Make(context.job, context.schema, context.length));
  SpreadPlan plan(context.carrier.layout(), context.length.steps_per_clock());
  ASSIGN_OR_RETURN(LocalTraining::Own own, OwnOf(context, elastic, plan.groups()));
  ASSIGN_OR_RETURN(LocalTraining training,
                   LocalTraining::Make(context, std::move(optimizer), std::move(own)));
  ASSIGN_OR_RETURN(SpreadRunner::Vectors vectors, MakeVectors(context, elastic));
  return std::make_unique<SpreadRunner>(context, std::move(training), std::move(plan),
                                        std::move(vectors));
}

}  // namespace leeway
