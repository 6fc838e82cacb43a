// Elastic averaging: EASGD, and with momentum in the local optimizer EAMSGD (Zhang, Choromanska,
// LeCun 2015, arXiv:1412.6651, algorithms 1 and 2). The worker keeps weights x of its own; every
// tau local steps it and the centre c pull at each other with the same force e = alpha (x - c):
//   c += e on the server, x -= e here.
// The server answers the centre as it was before, so both sides use the same c, in one round trip.

#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "common/buffer.h"
#include "common/status.h"
#include "worker/exchange/exchanges.h"
#include "worker/exchange/local_optimizer.h"
#include "worker/exchange/local_state.h"
#include "worker/exchange/steps.h"

namespace leeway {
namespace {

class ElasticExchange : public Exchange {
 public:
  ElasticExchange(const ExchangeContext& context, LocalOptimizer optimizer)
      : context_(context),
        optimizer_(std::move(optimizer)),
        alpha_(static_cast<float>(context.job.exchange().elastic().alpha())),
        centre_(context.schema.total()),
        gradient_(context.schema.total()),
        state_(LocalState::Zeros(1 + optimizer_.slots(), context.schema.total())),
        saved_(LocalState::Zeros(1 + optimizer_.slots(), context.schema.total())) {
    // The local weights are what is sent.
    state_.vectors[0] = context.client.MakeVector();
  }

  // Without a state the worker starts at the centre: at clock 0 the initial weights.
  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    ASSIGN_OR_RETURN(const auto read,
                     context_.client.Wait(context_.client.Pull(clock, centre_.span())));
    if (loaded_) return read.version;
    std::memcpy(local().data(), centre_.data(), centre_.span().size_bytes());
    saved_.CopyFrom(state_);
    return read.version;
  }

  absl::StatusOr<ClockReport> Run(const ClockSpan& span) override {
    ClockReport report;
    for (uint64_t i = 0; i < span.steps; ++i) {
      RETURN_IF_ERROR(LocalStep(span.clock, span.first_step + i, report));
    }
    RETURN_IF_ERROR(ExchangeAll(context_, span.clock, report.examples, "the local weight", local(),
                                centre_.span()));
    float* x = local().data();
    const float* c = centre_.data();
    for (size_t i = 0; i < centre_.size(); ++i) x[i] -= alpha_ * (x[i] - c[i]);
    saved_.CopyFrom(state_);
    return report;
  }

  std::span<const float> weights() const override { return centre_.span(); }
  absl::Status ReadLatest() override {
    return context_.client.Wait(context_.client.PullLatest(centre_.span())).status();
  }

  std::string SaveState() const override { return SerializeState(saved_); }
  absl::Status LoadState(const std::string& bytes) override {
    RETURN_IF_ERROR(ParseState(bytes, saved_));
    state_.CopyFrom(saved_);
    loaded_ = true;
    return absl::OkStatus();
  }

 private:
  std::span<float> local() { return state_.vectors[0].span(); }

  absl::Status LocalStep(uint64_t clock, uint64_t step, ClockReport& report) {
    report.learning_rate = optimizer_.LearningRate(step);
    ASSIGN_OR_RETURN(const StepResult result,
                     RunStep(context_, clock, step, local(), gradient_.span(), report));
    if (result.examples == 0) return absl::OkStatus();
    optimizer_.Apply(step, ++state_.updates, gradient_.span(), local(),
                     std::span(state_.vectors).subspan(1));
    return absl::OkStatus();
  }

  const ExchangeContext context_;
  const LocalOptimizer optimizer_;
  const float alpha_;
  // As last answered.
  FloatBuffer centre_;
  FloatBuffer gradient_;
  // Local weights and slots, in use; and as they were when the last clock was complete, for a clock
  // that is broken off is done again from there.
  LocalState state_;
  LocalState saved_;
  bool loaded_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Exchange>> MakeElasticExchange(const ExchangeContext& context) {
  ASSIGN_OR_RETURN(LocalOptimizer optimizer,
                   LocalOptimizer::Make(context.job.exchange().elastic().optimizer(),
                                        context.schema, context.length));
  return std::make_unique<ElasticExchange>(context, std::move(optimizer));
}

}  // namespace leeway
