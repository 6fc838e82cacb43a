// Elastic averaging: EASGD, and with momentum in the local optimizer EAMSGD (Zhang, Choromanska,
// LeCun 2015, arXiv:1412.6651, algorithms 1 and 2). The worker keeps weights x of its own; every
// tau local steps it and the centre c pull at each other with the same force e = alpha (x - c):
//   c += e on the server, x -= e here.
// The server answers the centre as it was before, so both sides use the same c, in one round trip.

#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/buffer.h"
#include "common/status.h"
#include "worker/exchange/exchanges.h"
#include "worker/exchange/local_training.h"
#include "worker/exchange/steps.h"

namespace leeway {
namespace {

class ElasticExchange : public Exchange {
 public:
  ElasticExchange(const ExchangeContext& context, LocalOptimizer optimizer)
      : context_(context),
        training_(context, std::move(optimizer), Sent(context.client)),
        averages_(LocalAverages(context.schema, std::numeric_limits<double>::infinity())),
        alpha_(static_cast<float>(context.job.exchange().elastic().alpha())),
        centre_(context.schema.total()),
        gradient_(context.schema.total()) {}

  // Without a state the worker starts at the centre: at clock 0 the initial weights.
  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    ASSIGN_OR_RETURN(const uint64_t version, ReadWeights(context_.client, clock, centre_.span()));
    if (training_.loaded()) return version;
    std::memcpy(local().data(), centre_.data(), centre_.span().size_bytes());
    training_.Keep(clock);
    return version;
  }

  absl::StatusOr<ClockReport> Run(const ClockSpan& span) override {
    ClockReport report;
    for (uint64_t i = 0; i < span.steps && !report.none_left; ++i) {
      RETURN_IF_ERROR(
          training_
              .Step(span.clock, span.first_step + i, local(), gradient_.span(), averages_, report)
              .status());
    }
    RETURN_IF_ERROR(ExchangeAll(context_, span.clock, report.examples, "the local weight", local(),
                                centre_.span()));
    float* x = local().data();
    const float* c = centre_.data();
    for (size_t i = 0; i < centre_.size(); ++i) x[i] -= alpha_ * (x[i] - c[i]);
    training_.Keep(span.clock + 1);
    return report;
  }

  std::span<const float> weights() const override { return centre_.span(); }
  absl::Status ReadLatest() override {
    return context_.client.Wait(context_.client.PullLatest(centre_.span())).status();
  }

  std::string SaveState() const override { return training_.Save(); }
  absl::Status LoadState(const std::string& bytes) override { return training_.Load(bytes); }

 private:
  // The local weights are what is sent.
  static LocalTraining::Own Sent(ParameterClient& client) {
    LocalTraining::Own own{.exchange = "elastic", .names = {"weights"}};
    own.vectors.push_back(client.MakeVector());
    return own;
  }
  std::span<float> local() { return training_.own(0); }

  const ExchangeContext context_;
  LocalTraining training_;
  // Running values, which the force takes as it takes the weights.
  const std::vector<LocalAverage> averages_;
  const float alpha_;
  // As last answered.
  FloatBuffer centre_;
  FloatBuffer gradient_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Exchange>> MakeElasticExchange(const ExchangeContext& context) {
  ASSIGN_OR_RETURN(LocalOptimizer optimizer,
                   LocalOptimizer::Make(context.job.exchange().elastic().optimizer(),
                                        context.schema, context.length));
  return std::make_unique<ElasticExchange>(context, std::move(optimizer));
}

}  // namespace leeway
