// A delta or elastic exchange whose blocks leave spread over the clock's H local steps instead of
// all at its end, so that no step sends more than an H-th of the model and the exchange is hidden
// behind the steps: Streaming DiLoCo (Douillard et al. 2025, arXiv:2501.18512, algorithm 2), with
// its overlap tau of one step and its mixing factor of 1, and the same for elastic averaging.
//
// A clock, for each group of neighbouring blocks (spread_plan.h), x being the local weights and s
// what they were when the group left:
//   delta:    it leaves as x_start - s, where x_start is what the servers last answered; when the
//             next local step is done, x = answer + (x - s): what that step moved is kept.
//   elastic:  it leaves as s; when the next step is done, x -= alpha (s - answer).
// What the clock's last step has sent is waited for at once, so that between clocks nothing is
// under way and all blocks stand at the same clock. When an answer is taken depends on the step
// alone, never on when it came: sync stays deterministic. The contribution's weight is the number
// of examples since the group last left.
//
// Between clocks the worker keeps its local weights, for those of a group that left early have
// moved on, the optimizer's slots, and those numbers of examples.

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/buffer.h"
#include "common/status.h"
#include "worker/exchange/exchanges.h"
#include "worker/exchange/local_optimizer.h"
#include "worker/exchange/local_state.h"
#include "worker/exchange/open_exchange.h"
#include "worker/exchange/spread_plan.h"
#include "worker/exchange/steps.h"

namespace leeway {
namespace {

class SpreadExchange : public Exchange {
 public:
  // `alpha`: elastic; nothing: delta.
  SpreadExchange(const ExchangeContext& context, LocalOptimizer optimizer,
                 std::optional<float> alpha)
      : context_(context),
        optimizer_(std::move(optimizer)),
        alpha_(alpha),
        plan_(context.client.layout(), context.length.steps_per_clock()),
        answered_(context.schema.total()),
        gradient_(context.schema.total()),
        left_(alpha ? 0 : context.schema.total()),
        contribution_(context.client.MakeVector()),
        state_(LocalState::Zeros(1 + optimizer_.slots(), context.schema.total())),
        saved_(LocalState::Zeros(state_.vectors.size() + (context.client.keeps_residual() ? 1 : 0),
                                 context.schema.total())) {
    state_.counts.resize(plan_.groups());
    saved_.counts.resize(plan_.groups());
  }

  // Without a state the worker starts at the servers' weights.
  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    ASSIGN_OR_RETURN(const auto read,
                     context_.client.Wait(context_.client.Pull(clock, answered_.span())));
    if (loaded_) return read.version;
    std::memcpy(local().data(), answered_.data(), answered_.span().size_bytes());
    saved_.CopyFrom(state_);
    return read.version;
  }

  absl::StatusOr<ClockReport> Run(const ClockSpan& span) override {
    ClockReport report;
    OpenExchange exchange(context_.client, context_.now);
    uint64_t merged = 0;
    uint64_t sent = 0;
    for (uint64_t done = 1; done <= span.steps; ++done) {
      RETURN_IF_ERROR(LocalStep(span.clock, span.first_step + done - 1, report));
      RETURN_IF_ERROR(exchange.WaitForAll());
      for (; merged < sent; ++merged) Merge(plan_.Elements(merged));
      for (; sent < plan_.groups() && plan_.LeavesAfter(sent, span.steps) <= done; ++sent) {
        RETURN_IF_ERROR(Send(span.clock, sent, exchange));
      }
    }
    RETURN_IF_ERROR(exchange.WaitForAll());
    for (; merged < sent; ++merged) Merge(plan_.Elements(merged));
    context_.listener.OnComplete(exchange.End());
    saved_.CopyFrom(state_);
    if (context_.client.keeps_residual()) {
      context_.client.ReadResidual(span.clock + 1, saved_.vectors.back().span());
    }
    return report;
  }

  std::span<const float> weights() const override { return answered_.span(); }
  absl::Status ReadLatest() override {
    return context_.client.Wait(context_.client.PullLatest(answered_.span())).status();
  }

  std::string SaveState() const override { return SerializeState(saved_); }
  absl::Status LoadState(const std::string& bytes) override {
    RETURN_IF_ERROR(ParseState(bytes, saved_));
    state_.CopyFrom(saved_);
    if (context_.client.keeps_residual()) {
      context_.client.SetResidual(saved_.vectors.back().span());
    }
    loaded_ = true;
    return absl::OkStatus();
  }

 private:
  std::span<float> local() { return state_.vectors[0].span(); }

  absl::Status LocalStep(uint64_t clock, uint64_t step, ClockReport& report) {
    report.learning_rate = optimizer_.LearningRate(step);
    ASSIGN_OR_RETURN(const StepResult result,
                     RunStep(context_, clock, step, local(), gradient_.span(), report));
    for (uint64_t& examples : state_.counts) examples += result.examples;
    if (result.examples == 0) return absl::OkStatus();
    optimizer_.Apply(step, ++state_.updates, gradient_.span(), local(),
                     std::span(state_.vectors).subspan(1));
    return absl::OkStatus();
  }

  absl::Status Send(uint64_t clock, uint64_t group, OpenExchange& exchange) {
    const ElementRange range = plan_.Elements(group);
    const float* x = local().data();
    float* out = contribution_.data();
    for (uint64_t i = range.offset; i < range.end(); ++i) {
      out[i] = alpha_ ? x[i] : answered_.data()[i] - x[i];
    }
    if (!alpha_)
      std::memcpy(left_.data() + range.offset, x + range.offset, range.count * sizeof(float));
    RETURN_IF_ERROR(
        Annotate(CheckFinite(context_.schema, alpha_ ? "the local weight" : "the change",
                             range.offset, contribution_.span().subspan(range.offset, range.count)),
                 Who(context_, clock)));
    if (group == 0) {
      RETURN_IF_ERROR(context_.listener.OnBegin(clock));
      exchange.Begin(clock);
    }
    exchange.Send(plan_.Blocks(group), std::exchange(state_.counts[group], 0), contribution_.span(),
                  answered_.span());
    return absl::OkStatus();
  }

  void Merge(const ElementRange& range) {
    float* x = local().data();
    const float* answer = answered_.data();
    for (uint64_t i = range.offset; i < range.end(); ++i) {
      if (alpha_) {
        x[i] -= *alpha_ * (contribution_.data()[i] - answer[i]);
      } else {
        x[i] = answer[i] + (x[i] - left_.data()[i]);
      }
    }
  }

  const ExchangeContext context_;
  const LocalOptimizer optimizer_;
  const std::optional<float> alpha_;
  const SpreadPlan plan_;
  // What the servers last answered, group by group.
  FloatBuffer answered_;
  FloatBuffer gradient_;
  // Delta: the local weights as each group left; elastic: those are the contribution.
  FloatBuffer left_;
  FloatBuffer contribution_;
  // Local weights and slots, and by group the examples since it left: in use; and as they were when
  // the last clock was complete, with the residual of compressed contributions behind them.
  LocalState state_;
  LocalState saved_;
  bool loaded_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Exchange>> MakeSpreadExchange(const ExchangeContext& context) {
  const v1::Exchange& exchange = context.job.exchange();
  const bool elastic = exchange.has_elastic();
  ASSIGN_OR_RETURN(
      LocalOptimizer optimizer,
      LocalOptimizer::Make(elastic ? exchange.elastic().optimizer() : exchange.delta().optimizer(),
                           context.schema, context.length));
  std::optional<float> alpha;
  if (elastic) alpha = static_cast<float>(exchange.elastic().alpha());
  return std::make_unique<SpreadExchange>(context, std::move(optimizer), alpha);
}

}  // namespace leeway
