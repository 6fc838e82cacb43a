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
// moved on, the optimizer's slots, and those numbers of examples. For delta it keeps the answers as
// well: one that resumes outside of sync finds other weights on the servers, and what others have
// made of them meanwhile is not this worker's change.
//
// Of a delta worker's averaged elements all this is simpler: they hold, and are sent as, the
// weighted mean of the batches since they last left (common/update/averaging.h), whatever is
// answered.

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/buffer.h"
#include "common/status.h"
#include "worker/exchange/exchanges.h"
#include "worker/exchange/local_training.h"
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
        alpha_(alpha),
        plan_(context.client.layout(), context.length.steps_per_clock()),
        training_(context, std::move(optimizer), Own()),
        averages_(GroupAverages()),
        centre_(alpha ? context.schema.total() : 0),
        gradient_(context.schema.total()),
        left_(alpha ? 0 : context.schema.total()),
        contribution_(context.client.MakeVector()) {}

  // Without a state the worker starts at the servers' weights.
  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    std::vector<float> before;
    if (training_.loaded() && !alpha_) before.assign(answered().begin(), answered().end());
    ASSIGN_OR_RETURN(const uint64_t version, ReadWeights(context_.client, clock, answered()));
    if (!training_.loaded()) {
      std::memcpy(local().data(), answered().data(), answered().size_bytes());
    }
    Rebase(before);
    training_.Keep(clock);
    return version;
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
    training_.Keep(span.clock + 1);
    return report;
  }

  std::span<const float> weights() const override {
    return alpha_ ? centre_.span() : training_.own(1);
  }
  absl::Status ReadLatest() override {
    return context_.client.Wait(context_.client.PullLatest(answered())).status();
  }

  std::string SaveState() const override { return training_.Save(); }
  absl::Status LoadState(const std::string& bytes) override { return training_.Load(bytes); }

 private:
  // Local weights; for delta also what the servers last answered.
  LocalTraining::Own Own() const {
    LocalTraining::Own own{.exchange = alpha_ ? "elastic" : "delta", .names = {"weights"}};
    if (!alpha_) own.names.emplace_back("answers");
    for (size_t i = 0; i < own.names.size(); ++i) own.vectors.emplace_back(context_.schema.total());
    own.counts = plan_.groups();
    return own;
  }
  std::span<float> local() { return training_.own(0); }
  // What the servers last answered, group by group.
  std::span<float> answered() { return alpha_ ? centre_.span() : training_.own(1); }

  bool IsAveraged(uint64_t element) const { return element >= context_.schema.trained(); }

  // The answers were `before` when the worker last moved away from them, and are others now: what
  // it has moved stays what it was. The same answers leave the same bits.
  void Rebase(const std::vector<float>& before) {
    float* x = local().data();
    const float* now = answered().data();
    for (size_t i = 0; i < std::min<size_t>(before.size(), context_.schema.trained()); ++i) {
      if (now[i] != before[i]) x[i] += now[i] - before[i];
    }
  }

  // Averaged elements of one group.
  struct GroupAverage {
    uint64_t group = 0;
    AveragedElements elements;
  };
  std::vector<GroupAverage> GroupAverages() const {
    std::vector<GroupAverage> averages;
    const auto all = AveragedElementsOf(context_.schema);
    for (uint64_t group = 0; group < plan_.groups(); ++group) {
      for (const AveragedElements& elements : Within(all, plan_.Elements(group))) {
        averages.push_back({group, elements});
      }
    }
    return averages;
  }

  absl::Status LocalStep(uint64_t clock, uint64_t step, ClockReport& report) {
    if (report.none_left) return absl::OkStatus();
    constexpr double kRunning = std::numeric_limits<double>::infinity();
    std::vector<LocalAverage> averages;
    for (const auto& [group, elements] : averages_) {
      const uint64_t examples = training_.counts()[group];
      averages.push_back({elements, alpha_ ? kRunning : Batches(context_, examples)});
    }
    ASSIGN_OR_RETURN(const StepResult result,
                     training_.Step(clock, step, local(), gradient_.span(), averages, report));
    for (uint64_t& examples : training_.counts()) examples += result.examples;
    return absl::OkStatus();
  }

  absl::Status Send(uint64_t clock, uint64_t group, OpenExchange& exchange) {
    const ElementRange range = plan_.Elements(group);
    const float* x = local().data();
    const float* answer = answered().data();
    float* out = contribution_.data();
    for (uint64_t i = range.offset; i < range.end(); ++i) {
      out[i] = alpha_ || IsAveraged(i) ? x[i] : answer[i] - x[i];
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
    exchange.Send(plan_.Blocks(group), std::exchange(training_.counts()[group], 0),
                  contribution_.span(), answered());
    return absl::OkStatus();
  }

  void Merge(const ElementRange& range) {
    float* x = local().data();
    const float* answer = answered().data();
    for (uint64_t i = range.offset; i < range.end(); ++i) {
      if (alpha_) {
        x[i] -= *alpha_ * (contribution_.data()[i] - answer[i]);
      } else if (!IsAveraged(i)) {
        x[i] = answer[i] + (x[i] - left_.data()[i]);
      }
    }
  }

  const ExchangeContext context_;
  const std::optional<float> alpha_;
  const SpreadPlan plan_;
  LocalTraining training_;
  const std::vector<GroupAverage> averages_;
  // Elastic: what the servers last answered; a delta worker keeps it.
  FloatBuffer centre_;
  FloatBuffer gradient_;
  // Delta: the local weights as each group left; elastic: those are the contribution.
  FloatBuffer left_;
  FloatBuffer contribution_;
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
