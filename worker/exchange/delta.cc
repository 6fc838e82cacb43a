// What the weights lose in H local steps: x_start - x_end, weighted by the examples seen. With sync
// and sgd(lr 1) on the servers this is local SGD (Stich 2019) and FedAvg (McMahan et al. 2017,
// algorithm 1); with momentum or Adam there, FedAvgM and FedAdam (Reddi et al. 2021, algorithm 2);
// with Nesterov there and AdamW here, DiLoCo (Douillard et al. 2023, algorithm 1). The local
// optimizer's slots live on between clocks.

#include <cstring>
#include <memory>
#include <utility>

#include "common/buffer.h"
#include "common/status.h"
#include "worker/exchange/exchanges.h"
#include "worker/exchange/local_optimizer.h"
#include "worker/exchange/local_state.h"
#include "worker/exchange/steps.h"

namespace leeway {
namespace {

class DeltaExchange : public Exchange {
 public:
  DeltaExchange(const ExchangeContext& context, LocalOptimizer optimizer)
      : context_(context),
        optimizer_(std::move(optimizer)),
        start_(context.schema.total()),
        local_(context.schema.total()),
        contribution_(context.client.MakeVector()),
        state_(LocalState::Zeros(optimizer_.slots(), context.schema.total())),
        saved_(LocalState::Zeros(optimizer_.slots() + (context.client.keeps_residual() ? 1 : 0),
                                 context.schema.total())) {}

  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    ASSIGN_OR_RETURN(const auto read,
                     context_.client.Wait(context_.client.Pull(clock, start_.span())));
    return read.version;
  }

  absl::StatusOr<ClockReport> Run(const ClockSpan& span) override {
    ClockReport report;
    std::memcpy(local_.data(), start_.data(), start_.span().size_bytes());
    for (uint64_t i = 0; i < span.steps; ++i) {
      RETURN_IF_ERROR(LocalStep(span.clock, span.first_step + i, report));
    }
    for (size_t i = 0; i < start_.size(); ++i) {
      contribution_.data()[i] = start_.data()[i] - local_.data()[i];
    }
    RETURN_IF_ERROR(ExchangeAll(context_, span.clock, report.examples, "the change",
                                contribution_.span(), start_.span()));
    saved_.CopyFrom(state_);
    if (context_.client.keeps_residual()) {
      context_.client.ReadResidual(span.clock + 1, saved_.vectors.back().span());
    }
    return report;
  }

  std::span<const float> weights() const override { return start_.span(); }
  absl::Status ReadLatest() override {
    return context_.client.Wait(context_.client.PullLatest(start_.span())).status();
  }

  std::string SaveState() const override { return SerializeState(saved_); }
  absl::Status LoadState(const std::string& bytes) override {
    RETURN_IF_ERROR(ParseState(bytes, saved_));
    state_.CopyFrom(saved_);
    if (context_.client.keeps_residual()) {
      context_.client.SetResidual(saved_.vectors.back().span());
    }
    return absl::OkStatus();
  }

 private:
  absl::Status LocalStep(uint64_t clock, uint64_t step, ClockReport& report) {
    report.learning_rate = optimizer_.LearningRate(step);
    ASSIGN_OR_RETURN(const StepResult result,
                     RunStep(context_, clock, step, local_.span(), contribution_.span(), report));
    if (result.examples == 0) return absl::OkStatus();
    optimizer_.Apply(step, ++state_.updates, contribution_.span(), local_.span(), state_.vectors);
    return absl::OkStatus();
  }

  const ExchangeContext context_;
  const LocalOptimizer optimizer_;
  // x_start; after the exchange the next one.
  FloatBuffer start_;
  FloatBuffer local_;
  // A step's gradient, then the clock's contribution.
  FloatBuffer contribution_;
  // The slots, in use; and as they were when the last clock was complete, with the residual of
  // compressed contributions behind them: a clock that is broken off is done again from there.
  LocalState state_;
  LocalState saved_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Exchange>> MakeDeltaExchange(const ExchangeContext& context) {
  ASSIGN_OR_RETURN(LocalOptimizer optimizer,
                   LocalOptimizer::Make(context.job.exchange().delta().optimizer(), context.schema,
                                        context.length));
  return std::make_unique<DeltaExchange>(context, std::move(optimizer));
}

}  // namespace leeway
