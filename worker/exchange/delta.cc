// What the weights lose in H local steps: x_start - x_end, weighted by the examples seen. With sync
// and sgd(lr 1) on the servers this is local SGD (Stich 2019) and FedAvg (McMahan et al. 2017,
// algorithm 1); with momentum or Adam there, FedAvgM and FedAdam (Reddi et al. 2021, algorithm 2);
// with Nesterov there and AdamW here, DiLoCo (Douillard et al. 2023, algorithm 1). The local
// optimizer's slots live on between clocks. Averaged elements hold, and are sent as, the weighted
// mean of the clock's own batches (common/update/averaging.h).

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "common/buffer.h"
#include "common/status.h"
#include "worker/exchange/exchanges.h"
#include "worker/exchange/local_training.h"
#include "worker/exchange/steps.h"

namespace leeway {
namespace {

class DeltaExchange : public Exchange {
 public:
  DeltaExchange(const ExchangeContext& context, LocalOptimizer optimizer)
      : context_(context),
        training_(context, std::move(optimizer), {.exchange = "delta"}),
        averages_(LocalAverages(context.schema, 0)),
        start_(context.schema.total()),
        local_(context.schema.total()),
        contribution_(context.client.MakeVector()) {}

  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    return ReadWeights(context_.client, clock, start_.span());
  }

  absl::StatusOr<ClockReport> Run(const ClockSpan& span) override {
    ClockReport report;
    std::memcpy(local_.data(), start_.data(), start_.span().size_bytes());
    for (uint64_t i = 0; i < span.steps && !report.none_left; ++i) {
      for (LocalAverage& average : averages_) {
        average.batches_before = Batches(context_, report.examples);
      }
      RETURN_IF_ERROR(training_
                          .Step(span.clock, span.first_step + i, local_.span(),
                                contribution_.span(), averages_, report)
                          .status());
    }
    const size_t trained = context_.schema.trained();
    for (size_t i = 0; i < trained; ++i) {
      contribution_.data()[i] = start_.data()[i] - local_.data()[i];
    }
    std::copy(local_.data() + trained, local_.data() + local_.size(),
              contribution_.data() + trained);
    RETURN_IF_ERROR(ExchangeAll(context_, span.clock, report.examples, "the change",
                                contribution_.span(), start_.span()));
    training_.Keep(span.clock + 1);
    return report;
  }

  std::span<const float> weights() const override { return start_.span(); }
  absl::Status ReadLatest() override {
    return context_.client.Wait(context_.client.PullLatest(start_.span())).status();
  }

  std::string SaveState() const override { return training_.Save(); }
  absl::Status LoadState(const std::string& bytes) override { return training_.Load(bytes); }

 private:
  const ExchangeContext context_;
  LocalTraining training_;
  std::vector<LocalAverage> averages_;
  // x_start; after the exchange the next one.
  FloatBuffer start_;
  FloatBuffer local_;
  // A step's gradient, then the clock's contribution.
  FloatBuffer contribution_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Exchange>> MakeDeltaExchange(const ExchangeContext& context) {
  ASSIGN_OR_RETURN(LocalOptimizer optimizer,
                   LocalOptimizer::Make(context.job.exchange().delta().optimizer(), context.schema,
                                        context.length));
  return std::make_unique<DeltaExchange>(context, std::move(optimizer));
}

}  // namespace leeway
