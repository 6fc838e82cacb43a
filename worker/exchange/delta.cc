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
#include "worker/exchange/exchanges.h"
#include "worker/exchange/local_training.h"
#include "worker/exchange/steps.h"

namespace leeway {
namespace {

class DeltaExchange : public Exchange {
 public:
  // Both vectors are as long as the model.
  struct Vectors {
    // x_start of this clock. After the exchange it becomes x_start of the next clock.
    FlatVector start;
    FlatVector local;
    // The gradient during a step, and the contribution at the end of the clock.
    FlatVector contribution;
  };
  DeltaExchange(const ExchangeContext& context, LocalTraining training, Vectors vectors)
      : context_(context),
        training_(std::move(training)),
        averages_(LocalAverages(context.schema, 0)),
        vectors_(std::move(vectors)) {}

  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    ASSIGN_OR_RETURN(const uint64_t version,
                     ReadWeights(context_.client, clock, vectors_.start.host()));
    RETURN_IF_ERROR(vectors_.start.Up());
    return version;
  }

  absl::StatusOr<ClockReport> Run(const ClockSpan& span) override {
    auto& [start, local, contribution] = vectors_;
    ClockReport report;
    BeginContribution(context_);
    context_.backend.Copy(start.size(), start.device().data(), local.device().data());
    for (uint64_t i = 0; i < span.steps && !report.none_left; ++i) {
      for (LocalAverage& average : averages_) {
        average.batches_before = Batches(context_, report.examples);
      }
      RETURN_IF_ERROR(training_
                          .Step(span.clock, span.first_step + i, local.device(),
                                contribution.device(), averages_, report)
                          .status());
    }
    ASSIGN_OR_RETURN(const bool known_finite, MakeContribution());
    RETURN_IF_ERROR(ExchangeAll(context_, span.clock, report.examples, "the change", known_finite,
                                contribution, start));
    training_.Keep(span.clock + 1);
    return report;
  }

  std::span<const float> weights() const override { return vectors_.start.host(); }
  absl::Status ReadLatest() override {
    return context_.client.Wait(context_.client.PullLatest(vectors_.start.host())).status();
  }

  absl::StatusOr<std::string> SaveState() const override { return training_.Save(); }
  absl::Status LoadState(const std::string& bytes) override { return training_.Load(bytes); }

 private:
  // Computes the contribution on the device. Returns whether it is known to be finite.
  absl::StatusOr<bool> MakeContribution() {
    auto& [start, local, contribution] = vectors_;
    const size_t trained = context_.schema.trained();
    context_.backend.AddDifference(trained, 1, start.device().data(), local.device().data(),
                                   nullptr, contribution.device().data());
    context_.backend.Copy(local.size() - trained, local.device().data() + trained,
                          contribution.device().data() + trained);
    return training_.KnownFinite(contribution.device());
  }

  const ExchangeContext context_;
  LocalTraining training_;
  std::vector<LocalAverage> averages_;
  Vectors vectors_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Exchange>> MakeDeltaExchange(const ExchangeContext& context) {
  ASSIGN_OR_RETURN(LocalOptimizer optimizer,
                   LocalOptimizer::Make(context.job, context.schema, context.length));
  ASSIGN_OR_RETURN(LocalTraining training,
                   LocalTraining::Make(context, std::move(optimizer), {.exchange = "delta"}));
  const size_t total = context.schema.total();
  DeltaExchange::Vectors vectors;
  ASSIGN_OR_RETURN(vectors.start, FlatVector::Twins(context.backend, FloatBuffer(total)));
  ASSIGN_OR_RETURN(vectors.local, FlatVector::OnDevice(context.backend, total));
  ASSIGN_OR_RETURN(vectors.contribution,
                   FlatVector::Twins(context.backend, MakeContribution(context)));
  return std::make_unique<DeltaExchange>(context, std::move(training), std::move(vectors));
}

}  // namespace leeway
