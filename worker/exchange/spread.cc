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

#include "client/exchange/open_exchange.h"
#include "common/buffer.h"
#include "common/status.h"
#include "worker/compute/flat_vector.h"
#include "worker/exchange/exchanges.h"
#include "worker/exchange/local_training.h"
#include "worker/exchange/spread_plan.h"
#include "worker/exchange/steps.h"

namespace leeway {
namespace {

class SpreadExchange : public Exchange {
 public:
  // All of the model's size.
  struct Vectors {
    // Elastic: what the servers last answered; a delta worker keeps it.
    FlatVector centre;
    FlatVector gradient;
    // Delta: the local weights as each group left; elastic: those are the contribution.
    FlatVector left;
    FlatVector contribution;
  };
  // `alpha`: elastic; nothing: delta.
  SpreadExchange(const ExchangeContext& context, LocalTraining training, SpreadPlan plan,
                 std::optional<float> alpha, Vectors vectors)
      : context_(context),
        alpha_(alpha),
        plan_(std::move(plan)),
        training_(std::move(training)),
        averages_(GroupAverages()),
        vectors_(std::move(vectors)) {}

  // Without a state the worker starts at the servers' weights.
  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    const bool goes_on = training_.loaded() && !alpha_;
    FloatBuffer before(goes_on ? answered().size() : 0);
    if (goes_on) {
      RETURN_IF_ERROR(answered().Down());
      std::memcpy(before.data(), answered().host().data(), before.span().size_bytes());
    }
    ASSIGN_OR_RETURN(const uint64_t version,
                     ReadWeights(context_.client, clock, answered().host()));
    RETURN_IF_ERROR(answered().Up());
    if (!training_.loaded()) {
      context_.backend.Copy(local().size(), answered().device().data(), local().device().data());
    }
    if (goes_on) RETURN_IF_ERROR(Rebase(before.span()));
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
      for (; merged < sent; ++merged) RETURN_IF_ERROR(Merge(plan_.Elements(merged)));
      for (; sent < plan_.groups() && plan_.LeavesAfter(sent, span.steps) <= done; ++sent) {
        RETURN_IF_ERROR(Send(span.clock, sent, exchange));
      }
    }
    RETURN_IF_ERROR(exchange.WaitForAll());
    for (; merged < sent; ++merged) RETURN_IF_ERROR(Merge(plan_.Elements(merged)));
    context_.listener.OnComplete(exchange.End());
    training_.Keep(span.clock + 1);
    return report;
  }

  std::span<const float> weights() const override { return answered().host(); }
  absl::Status ReadLatest() override {
    return context_.client.Wait(context_.client.PullLatest(answered().host())).status();
  }

  absl::StatusOr<std::string> SaveState() const override { return training_.Save(); }
  absl::Status LoadState(const std::string& bytes) override { return training_.Load(bytes); }

 private:
  FlatVector& local() { return training_.own(0); }
  // What the servers last answered, group by group.
  FlatVector& answered() { return alpha_ ? vectors_.centre : training_.own(1); }
  const FlatVector& answered() const { return alpha_ ? vectors_.centre : training_.own(1); }

  // The answers were `before` when the worker last moved away from them, and are others now: what
  // it has moved stays what it was. The same answers leave the same bits.
  absl::Status Rebase(std::span<const float> before) {
    ASSIGN_OR_RETURN(FloatBuffer x, local().Copy());
    const std::span<const float> now = answered().host();
    for (size_t i = 0; i < context_.schema.trained(); ++i) {
      if (now[i] != before[i]) x.data()[i] += now[i] - before[i];
    }
    return local().Set(x.span());
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
                     training_.Step(clock, step, local().device(), vectors_.gradient.device(),
                                    averages, report));
    for (uint64_t& examples : training_.counts()) examples += result.examples;
    return absl::OkStatus();
  }

  // Of a range's elements, those that are trained, and the averaged ones behind them.
  ElementRange Trained(const ElementRange& range) const {
    const uint64_t end = std::clamp(context_.schema.trained(), range.offset, range.end());
    return {range.offset, end - range.offset};
  }
  ElementRange Averaged(const ElementRange& range) const {
    const uint64_t begin = Trained(range).end();
    return {begin, range.end() - begin};
  }

  // What leaves for the servers, on the device.
  void MakeContribution(const ElementRange& range) {
    Backend& backend = context_.backend;
    const float* const x = local().device().data();
    float* const out = vectors_.contribution.device().data();
    if (alpha_) return backend.Copy(range.count, x + range.offset, out + range.offset);
    const ElementRange trained = Trained(range);
    const ElementRange averaged = Averaged(range);
    backend.AddDifference(trained.count, 1, answered().device().data() + trained.offset,
                          x + trained.offset, nullptr, out + trained.offset);
    backend.Copy(averaged.count, x + averaged.offset, out + averaged.offset);
    backend.Copy(range.count, x + range.offset, vectors_.left.device().data() + range.offset);
  }

  absl::Status Send(uint64_t clock, uint64_t group, OpenExchange& exchange) {
    const ElementRange range = plan_.Elements(group);
    MakeContribution(range);
    ASSIGN_OR_RETURN(
        const bool known_finite,
        training_.KnownFinite(vectors_.contribution.device().subspan(range.offset, range.count)));
    const std::span<float> contribution = vectors_.contribution.host();
    if (!known_finite) {
      RETURN_IF_ERROR(vectors_.contribution.Down(range));
      RETURN_IF_ERROR(
          Annotate(CheckFinite(context_.schema, alpha_ ? "the local weight" : "the change",
                               range.offset, contribution.subspan(range.offset, range.count)),
                   Who(context_, clock)));
    }
    const BlockRange blocks = plan_.Blocks(group);
    const uint64_t examples = std::exchange(training_.counts()[group], 0);
    RETURN_IF_ERROR(context_.backend.Await(
        StartContribution(context_, clock, examples, blocks, range, vectors_.contribution)));
    if (group == 0) {
      RETURN_IF_ERROR(context_.listener.OnBegin(clock));
      exchange.Begin(clock);
    }
    exchange.Send(blocks, examples, contribution, answered().host());
    return absl::OkStatus();
  }

  absl::Status Merge(const ElementRange& range) {
    Backend& backend = context_.backend;
    RETURN_IF_ERROR(answered().Up(range));
    float* const x = local().device().data();
    const float* const answer = answered().device().data();
    if (alpha_) {
      backend.AddDifference(range.count, -*alpha_,
                            vectors_.contribution.device().data() + range.offset,
                            answer + range.offset, x + range.offset, x + range.offset);
      return absl::OkStatus();
    }
    const ElementRange trained = Trained(range);
    backend.AddDifference(trained.count, 1, x + trained.offset,
                          vectors_.left.device().data() + trained.offset, answer + trained.offset,
                          x + trained.offset);
    return absl::OkStatus();
  }

  const ExchangeContext context_;
  const std::optional<float> alpha_;
  const SpreadPlan plan_;
  LocalTraining training_;
  const std::vector<GroupAverage> averages_;
  Vectors vectors_;
};

absl::StatusOr<SpreadExchange::Vectors> MakeVectors(const ExchangeContext& context, bool elastic) {
  const size_t total = context.schema.total();
  SpreadExchange::Vectors vectors;
  ASSIGN_OR_RETURN(vectors.gradient, FlatVector::OnDevice(context.backend, total));
  ASSIGN_OR_RETURN(vectors.contribution,
                   FlatVector::Twins(context.backend, context.client.MakeVector()));
  FlatVector& own = elastic ? vectors.centre : vectors.left;
  ASSIGN_OR_RETURN(own, elastic ? FlatVector::Twins(context.backend, FloatBuffer(total))
                                : FlatVector::OnDevice(context.backend, total));
  return vectors;
}

// Local weights; for delta also what the servers last answered.
absl::StatusOr<LocalTraining::Own> OwnOf(const ExchangeContext& context, bool elastic,
                                         uint64_t groups) {
  LocalTraining::Own own{.exchange = elastic ? "elastic" : "delta", .names = {"weights"}};
  const size_t total = context.schema.total();
  ASSIGN_OR_RETURN(own.vectors.emplace_back(), FlatVector::OnDevice(context.backend, total));
  if (!elastic) {
    own.names.emplace_back("answers");
    ASSIGN_OR_RETURN(own.vectors.emplace_back(),
                     FlatVector::Twins(context.backend, FloatBuffer(total)));
  }
  own.counts = groups;
  return own;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Exchange>> MakeSpreadExchange(const ExchangeContext& context) {
  const v1::Exchange& exchange = context.job.exchange();
  const bool elastic = exchange.has_elastic();
  ASSIGN_OR_RETURN(LocalOptimizer optimizer,
                   LocalOptimizer::Make(context.job, context.schema, context.length));
  std::optional<float> alpha;
  if (elastic) alpha = static_cast<float>(exchange.elastic().alpha());
  SpreadPlan plan(context.client.layout(), context.length.steps_per_clock());
  ASSIGN_OR_RETURN(LocalTraining::Own own, OwnOf(context, elastic, plan.groups()));
  ASSIGN_OR_RETURN(LocalTraining training,
                   LocalTraining::Make(context, std::move(optimizer), std::move(own)));
  ASSIGN_OR_RETURN(SpreadExchange::Vectors vectors, MakeVectors(context, elastic));
  return std::make_unique<SpreadExchange>(context, std::move(training), std::move(plan), alpha,
                                          std::move(vectors));
}

}  // namespace leeway
