// The change of the weights over H local steps, x_start - x_end, weighted by the examples seen.
// With sync and sgd(lr 1) on the servers this is local SGD (Stich 2019) and FedAvg (McMahan et al.
// 2017, algorithm 1). With momentum or Adam on the servers it is FedAvgM and FedAdam (Reddi et al.
// 2021, algorithm 2). With Nesterov on the servers and AdamW in the worker it is DiLoCo (Douillard
// et al. 2023, algorithm 1). The local optimizer's slots are kept between clocks. Averaged elements
// hold the weighted mean of the clock's own batches, and that mean is sent
// (common/update/averaging.h).

#include <memory>
#include <utility>
#include <vector>

#include "common/buffer.h"
#include "common/status.h"
#include "worker/compute/flat_vector.h"
#include "worker/training/clock_runners.h"
#include "worker/training/local_runner.h"
#include "worker/training/steps.h"

namespace leeway {
namespace {

class DeltaRunner : public LocalRunner {
 public:
  // Both vectors are as long as the model.
  struct Vectors {
    // x_start of this clock. After the exchange it becomes x_start of the next clock.
    FlatVector start;
    FlatVector local;
    // The gradient during a step, and the contribution at the end of the clock.
    FlatVector contribution;
  };
  DeltaRunner(const RunnerContext& context, LocalTraining training, Vectors vectors)
      : LocalRunner(context, std::move(training)),
        averages_(LocalAverages(context.schema, 0)),
        vectors_(std::move(vectors)) {}

  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    ASSIGN_OR_RETURN(const uint64_t version,
                     ReadWeights(context().carrier, clock, vectors_.start.host()));
    RETURN_IF_ERROR(vectors_.start.Up());
    return version;
  }

  absl::StatusOr<ClockReport> Run(const ClockSpan& span) override {
    auto& [start, local, contribution] = vectors_;
    ClockReport report;
    context().carrier.Renew();
    backend().Copy(start.size(), start.device().data(), local.device().data());
    for (uint64_t i = 0; i < span.steps && !report.none_left; ++i) {
      for (LocalAverage& average : averages_) {
        average.batches_before = Batches(context(), report.examples);
      }
      RETURN_IF_ERROR(training()
                          .Step(span.clock, span.first_step + i, local.device(),
                                contribution.device(), averages_, report)
                          .status());
    }
    ASSIGN_OR_RETURN(const bool known_finite, MakeContribution());
    RETURN_IF_ERROR(ExchangeAll(context(), span.clock, report.examples, "the change", known_finite,
                                contribution, start));
    training().Keep(span.clock + 1);
    return report;
  }

 private:
  FlatVector& answered() override { return vectors_.start; }

  // Computes the contribution on the device. Returns whether it is known to be finite.
  absl::StatusOr<bool> MakeContribution() {
    auto& [start, local, contribution] = vectors_;
    const size_t trained = context().schema.trained();
    backend().AddDifference(trained, 1, start.device().data(), local.device().data(), nullptr,
                            contribution.device().data());
    backend().Copy(local.size() - trained, local.device().data() + trained,
                   contribution.device().data() + trained);
    return training().KnownFinite(contribution.device());
  }

  std::vector<LocalAverage> averages_;
  Vectors vectors_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ClockRunner>> MakeDeltaRunner(const RunnerContext& context) {
  ASSIGN_OR_RETURN(LocalOptimizer optimizer,
                   LocalOptimizer::Make(context.job, context.schema, context.length));
  ASSIGN_OR_RETURN(LocalTraining training,
                   LocalTraining::Make(context, std::move(optimizer), {.exchange = "delta"}));
  const size_t total = context.schema.total();
  DeltaRunner::Vectors vectors;
  ASSIGN_OR_RETURN(vectors.start, FlatVector::Twins(context.backend, FloatBuffer(total)));
  ASSIGN_OR_RETURN(vectors.local, FlatVector::OnDevice(context.backend, total));
  ASSIGN_OR_RETURN(vectors.contribution,
                   FlatVector::Twins(context.backend, context.carrier.MakeVector()));
  return std::make_unique<DeltaRunner>(context, std::move(training), std::move(vectors));
}

}  // namespace leeway
