// Exchanges mean gradients of steps that another program runs (worker/exchange/gradient.cc does the
// same for Leeway's own steps). A block is sent when all of its elements are final. The next
// clock's steps wait for the answers that they need. With a guard (gradient_guard.h) no block is
// sent before End.

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/block_cuts.h"
#include "common/buffer.h"
#include "common/interval_set.h"
#include "common/status.h"
#include "exchange/final_blocks.h"
#include "exchange/finite.h"
#include "exchange/gradient_guard.h"
#include "exchange/open_exchange.h"
#include "exchange/read_weights.h"
#include "exchange/running_values.h"
#include "exchange/step_exchanges.h"

namespace leeway {
namespace {

class GradientSteps : public StepExchange {
 public:
  explicit GradientSteps(const StepExchangeContext& context)
      : StepExchange(context),
        job_(context.registration.job()),
        running_(context.registration),
        guards_(GuardsGradients(job_.exchange())),
        in_parts_(!BlockCutsOf(context.registration.schema()).empty()),
        contribution_(context.client.MakeVector()),
        final_(context.client.layout()),
        open_(context.client, [] { return std::chrono::steady_clock::now(); }) {}

  std::span<float> contribution() override { return contribution_.span(); }

  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    next_ = clock;
    return ReadWeights(context().client, clock, context().weights);
  }

  void StartClock(uint64_t clock) override {
    step_ = {.clock = clock, .examples = job_.data().batch_size()};
    next_ = clock + 1;
    final_.Reset();
    told_ = {};
  }

  absl::StatusOr<bool> Wait(ElementRange elements, Time deadline) override {
    open_.Poll();
    return open_.WaitFor({&elements, 1}, deadline);
  }

  void SetExamples(uint64_t examples) override { step_.examples = examples; }

  absl::Status SetRates(ContributionRates rates) override {
    if ((step_.open || told_.size() > 0) && !in_parts_) {
      return absl::UnimplementedError(
          "some elements of this clock are final already; give the rates before the first of them "
          "(leeway_final)");
    }
    if (told_.size() > 0 && guards_) {
      return absl::InvalidArgumentError(
          "the clock's gradient is exchanged in parts, as of several optimizers, and "
          "exchange.max_norm and exchange.on_bad_gradient judge it as a whole: leave them out of "
          "the job");
    }
    RETURN_IF_ERROR(CheckSkips(rates));
    step_.rates = std::move(rates);
    if (step_.open) open_.SetRates(step_.rates);
    return absl::OkStatus();
  }

  absl::Status Final(ElementRange elements) override {
    if (elements.count == 0) return absl::OkStatus();
    if (const uint64_t before = told_.size();
        told_.Add({elements.offset, elements.end()}), told_.size() < before + elements.count) {
      return absl::InvalidArgumentError(
          absl::StrCat("elements ", elements.offset, " to ", elements.end(),
                       " of the contribution: some of them were already final"));
    }
    const std::vector<BlockRange> complete = final_.Add({&elements, 1});
    if (guards_) return absl::OkStatus();
    open_.Poll();
    for (const BlockRange& blocks : complete) RETURN_IF_ERROR(Send(blocks));
    return absl::OkStatus();
  }

  absl::StatusOr<bool> End(uint64_t examples, Time deadline) override {
    if (!step_.open) step_.examples = examples;
    ASSIGN_OR_RETURN(const bool settled, OpenUntil(deadline));
    if (!settled) return false;
    RETURN_IF_ERROR(guards_ ? SendGuarded() : FinishRest());
    return true;
  }

  absl::StatusOr<bool> SettleUntil(Time deadline) override {
    if (!open_.under_way()) return true;
    ASSIGN_OR_RETURN(const bool answered, open_.WaitForAll(deadline));
    if (answered) context().listener.OnComplete(open_.End());
    return answered;
  }

  absl::StatusOr<bool> ReadAgain(std::span<float> into, Time deadline) override {
    ASSIGN_OR_RETURN(const bool settled, SettleUntil(deadline));
    if (!settled) return false;
    if (!reading_) reading_ = context().client.Pull(next_, into);
    const absl::Status read = context().client.Wait(*reading_, deadline).status();
    if (absl::IsDeadlineExceeded(read) && !context().client.IsOver(*reading_)) return false;
    StopReading();
    RETURN_IF_ERROR(read);
    return true;
  }

  bool Abandon() override {
    StopReading();
    open_.Abandon();
    return true;
  }

  absl::Status ReadLatest() override {
    return context().client.Wait(context().client.PullLatest(context().weights)).status();
  }

  uint64_t residual_clock() const override {
    return open_.under_way() ? open_.clock() : StepExchange::residual_clock();
  }

  // If the others go on without a lost worker, the saved state is older than its clock. This is
  // acceptable if it has no residual, only the program's own bytes.
  bool TakesOlderState() const override {
    return job_.consistency().mode() != v1::CONSISTENCY_MODE_SYNC &&
           !context().client.keeps_residual();
  }

  bool left_out() const override { return step_.left_out; }
  bool clipped() const override { return step_.clipped; }

 private:
  struct Step {
    uint64_t clock = 0;
    uint64_t examples = 0;
    ContributionRates rates = nullptr;
    bool open = false;
    bool left_out = false;
    bool clipped = false;
  };

  // Ends a ReadAgain in progress, so that nothing is written to its vector any more.
  void StopReading() {
    if (reading_) context().client.Settle(*reading_);
    reading_.reset();
  }

  const v1::ModelSchema& schema() const { return context().registration.schema(); }

  // A residual of skipped elements would be sent with the rest of their block, and so be lost.
  absl::Status CheckSkips(const ContributionRates& rates) const {
    const bool skips =
        rates != nullptr &&
        std::any_of(rates->begin(), rates->end(), [](const UpdatePart& part) { return part.skip; });
    if (!skips || !context().client.keeps_residual()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "this clock leaves some tensors out of its update, and the job's "
        "compression.contributions keeps what it loses for later clocks: take none, bf16 or fp16 "
        "there");
  }

  // Completes the previous exchange, and begins this clock's exchange.
  absl::StatusOr<bool> OpenUntil(Time deadline) {
    if (step_.open) return true;
    ASSIGN_OR_RETURN(const bool settled, SettleUntil(deadline));
    if (!settled) return false;
    RETURN_IF_ERROR(context().listener.OnBegin(step_.clock));
    open_.Begin(step_.clock, step_.examples, step_.rates);
    step_.open = true;
    return true;
  }

  absl::Status Send(const BlockRange& blocks) {
    RETURN_IF_ERROR(OpenUntil(Time::max()).status());
    const ElementRange range = ElementsOf(context().client.layout(), blocks);
    RETURN_IF_ERROR(CheckFinite(schema(), "the gradient", range.offset,
                                contribution_.span().subspan(range.offset, range.count)));
    running_.MakeMeans(range, step_.examples, context().weights, contribution_.span());
    open_.Send(blocks, contribution_.span(), context().weights);
    return absl::OkStatus();
  }

  // Finishes the elements that were not declared final yet.
  absl::Status FinishRest() {
    const std::vector<Interval> said = told_.Remove({0, contribution_.size()});
    std::vector<ElementRange> rest;
    uint64_t from = 0;
    for (const Interval& interval : said) {
      if (interval.first > from) rest.push_back({from, interval.first - from});
      from = interval.end;
    }
    if (from < contribution_.size()) rest.push_back({from, contribution_.size() - from});
    for (const BlockRange& blocks : final_.Add(rest)) RETURN_IF_ERROR(Send(blocks));
    return absl::OkStatus();
  }

  absl::Status SendGuarded() {
    const std::span<float> values = contribution_.span();
    ASSIGN_OR_RETURN(const GuardedGradient guarded,
                     GuardGradient(job_.exchange(), schema(), values));
    step_.left_out = guarded.verdict == GuardedGradient::kLeftOut;
    step_.clipped = guarded.verdict == GuardedGradient::kClipped;
    if (step_.left_out) {
      spdlog::warn("clock {}: left out of the update (exchange.on_bad_gradient): {}", step_.clock,
                   guarded.why);
    } else {
      running_.MakeMeans({0, values.size()}, step_.examples, context().weights, values);
    }
    open_.Send(context().client.AllBlocks(), step_.left_out ? 0 : step_.examples, values,
               context().weights);
    return absl::OkStatus();
  }

  const v1::TrainingJob& job_;
  const RunningValues running_;
  const bool guards_;
  // Blocks begin where the program wants it, so that parts of a clock can be exchanged apart.
  const bool in_parts_;
  FloatBuffer contribution_;
  Step step_;
  FinalBlocks final_;
  // The elements that were declared final.
  IntervalSet told_;
  OpenExchange open_;
  // The clock after the current or latest one, and a ReadAgain of its weights.
  uint64_t next_ = 0;
  std::optional<ParameterClient::Ticket> reading_;
};

}  // namespace

std::unique_ptr<StepExchange> MakeGradientSteps(const StepExchangeContext& context) {
  return std::make_unique<GradientSteps>(context);
}

}  // namespace leeway
