// Elastic averaging: EASGD, or EAMSGD if the local optimizer has momentum (Zhang, Choromanska,
// LeCun 2015, arXiv:1412.6651, algorithms 1 and 2). The worker keeps its own weights x. Every tau
// local steps, x and the centre c pull at each other with the same force e = alpha (x - c):
//   c += e on the server, x -= e in the worker.
// The server answers with the centre before its update, so both sides use the same c in one round
// trip.

#include <limits>
#include <memory>
#include <span>
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

class ElasticRunner : public LocalRunner {
 public:
  // Both vectors are as long as the model.
  struct Vectors {
    // The centre that the servers answered last.
    FlatVector centre;
    FlatVector gradient;
  };
  ElasticRunner(const RunnerContext& context, LocalTraining training, Vectors vectors)
      : LocalRunner(context, std::move(training)),
        averages_(LocalAverages(context.schema, std::numeric_limits<double>::infinity())),
        alpha_(static_cast<float>(context.job.exchange().elastic().alpha())),
        vectors_(std::move(vectors)) {}

  // Without a saved state the worker starts at the centre. At clock 0 the centre is the initial
  // weights.
  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    FlatVector& centre = vectors_.centre;
    ASSIGN_OR_RETURN(const uint64_t version, ReadWeights(context().carrier, clock, centre.host()));
    RETURN_IF_ERROR(centre.Up());
    if (training().loaded()) return version;
    backend().Copy(centre.size(), centre.device().data(), local().device().data());
    training().Keep(clock);
    return version;
  }

  absl::StatusOr<ClockReport> Run(const ClockSpan& span) override {
    FlatVector& centre = vectors_.centre;
    ClockReport report;
    for (uint64_t i = 0; i < span.steps && !report.none_left; ++i) {
      RETURN_IF_ERROR(training()
                          .Step(span.clock, span.first_step + i, local().device(),
                                vectors_.gradient.device(), averages_, report)
                          .status());
    }
    ASSIGN_OR_RETURN(const bool known_finite, training().KnownFinite(local().device()));
    RETURN_IF_ERROR(ExchangeAll(context(), span.clock, report.examples, "the local weight",
                                known_finite, local(), centre));
    float* const x = local().device().data();
    backend().AddDifference(centre.size(), -alpha_, x, centre.device().data(), x, x);
    training().Keep(span.clock + 1);
    return report;
  }

 private:
  FlatVector& answered() override { return vectors_.centre; }
  FlatVector& local() { return training().own(0); }

  // These elements hold running values. The force applies to them as it does to the weights.
  const std::vector<LocalAverage> averages_;
  const float alpha_;
  Vectors vectors_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ClockRunner>> MakeElasticRunner(const RunnerContext& context) {
  ASSIGN_OR_RETURN(LocalOptimizer optimizer,
                   LocalOptimizer::Make(context.job, context.schema, context.length));
  // The local weights are the contribution.
  LocalTraining::Own own{.exchange = "elastic", .names = {"weights"}};
  ASSIGN_OR_RETURN(own.vectors.emplace_back(),
                   FlatVector::Twins(context.backend, context.carrier.MakeVector()));
  ASSIGN_OR_RETURN(LocalTraining training,
                   LocalTraining::Make(context, std::move(optimizer), std::move(own)));
  const size_t total = context.schema.total();
  ElasticRunner::Vectors vectors;
  ASSIGN_OR_RETURN(vectors.centre, FlatVector::Twins(context.backend, FloatBuffer(total)));
  ASSIGN_OR_RETURN(vectors.gradient, FlatVector::OnDevice(context.backend, total));
  return std::make_unique<ElasticRunner>(context, std::move(training), std::move(vectors));
}

}  // namespace leeway
