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
#include "worker/exchange/exchanges.h"
#include "worker/exchange/local_training.h"
#include "worker/exchange/steps.h"

namespace leeway {
namespace {

class ElasticExchange : public Exchange {
 public:
  // Both vectors are as long as the model.
  struct Vectors {
    // The centre that the servers answered last.
    FlatVector centre;
    FlatVector gradient;
  };
  ElasticExchange(const ExchangeContext& context, LocalTraining training, Vectors vectors)
      : context_(context),
        training_(std::move(training)),
        averages_(LocalAverages(context.schema, std::numeric_limits<double>::infinity())),
        alpha_(static_cast<float>(context.job.exchange().elastic().alpha())),
        vectors_(std::move(vectors)) {}

  // Without a saved state the worker starts at the centre. At clock 0 the centre is the initial
  // weights.
  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    FlatVector& centre = vectors_.centre;
    ASSIGN_OR_RETURN(const uint64_t version, ReadWeights(context_.client, clock, centre.host()));
    RETURN_IF_ERROR(centre.Up());
    if (training_.loaded()) return version;
    context_.backend.Copy(centre.size(), centre.device().data(), local().device().data());
    training_.Keep(clock);
    return version;
  }

  absl::StatusOr<ClockReport> Run(const ClockSpan& span) override {
    FlatVector& centre = vectors_.centre;
    ClockReport report;
    for (uint64_t i = 0; i < span.steps && !report.none_left; ++i) {
      RETURN_IF_ERROR(training_
                          .Step(span.clock, span.first_step + i, local().device(),
                                vectors_.gradient.device(), averages_, report)
                          .status());
    }
    ASSIGN_OR_RETURN(const bool known_finite, training_.KnownFinite(local().device()));
    RETURN_IF_ERROR(ExchangeAll(context_, span.clock, report.examples, "the local weight",
                                known_finite, local(), centre));
    float* const x = local().device().data();
    context_.backend.AddDifference(centre.size(), -alpha_, x, centre.device().data(), x, x);
    training_.Keep(span.clock + 1);
    return report;
  }

  std::span<const float> weights() const override { return vectors_.centre.host(); }
  absl::Status ReadLatest() override {
    return context_.client.Wait(context_.client.PullLatest(vectors_.centre.host())).status();
  }

  absl::StatusOr<std::string> SaveState() const override { return training_.Save(); }
  absl::Status LoadState(const std::string& bytes) override { return training_.Load(bytes); }

 private:
  FlatVector& local() { return training_.own(0); }

  const ExchangeContext context_;
  LocalTraining training_;
  // These elements hold running values. The force applies to them as it does to the weights.
  const std::vector<LocalAverage> averages_;
  const float alpha_;
  Vectors vectors_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Exchange>> MakeElasticExchange(const ExchangeContext& context) {
  ASSIGN_OR_RETURN(LocalOptimizer optimizer,
                   LocalOptimizer::Make(context.job, context.schema, context.length));
  // The local weights are the contribution.
  LocalTraining::Own own{.exchange = "elastic", .names = {"weights"}};
  ASSIGN_OR_RETURN(own.vectors.emplace_back(),
                   FlatVector::Twins(context.backend, context.client.MakeVector()));
  ASSIGN_OR_RETURN(LocalTraining training,
                   LocalTraining::Make(context, std::move(optimizer), std::move(own)));
  const size_t total = context.schema.total();
  ElasticExchange::Vectors vectors;
  ASSIGN_OR_RETURN(vectors.centre, FlatVector::Twins(context.backend, FloatBuffer(total)));
  ASSIGN_OR_RETURN(vectors.gradient, FlatVector::OnDevice(context.backend, total));
  return std::make_unique<ElasticExchange>(context, std::move(training), std::move(vectors));
}

}  // namespace leeway
