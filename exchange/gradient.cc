// Mean gradients: sum_i n_i g_i / sum_i n_i over the batches of a clock, where n_i is a batch's
// number of examples. This is the classic parameter server (Li et al. 2014). Downpour SGD (Dean et
// al. 2012), SSP (Ho et al. 2013) and synchronous SGD use the same exchange and differ in
// consistency only.
//
// The exchange overlaps with the computation, from the backward pass of one clock to the forward
// pass of the next:
// 1. The backward pass finishes some elements (Final). Each block whose elements are all final is
//    sent while the backward pass computes the rest.
// 2. End returns when all blocks have been sent. Their answers arrive while the next batch is
//    loaded.
// 3. The next forward pass waits for the blocks of each layer before it reads them (Wait).
// 4. The exchange ends when all answers are there (SettleUntil). Only then does the next exchange
//    begin (Open).
//
// No copy of the vectors is needed. An answer overwrites a block's weights while the backward pass
// still computes other layers, but nothing reads that block's weights any more. The next
// contribution overwrites a block's elements only after the layer's next forward pass, when the
// others have answered the block. So the result does not depend on when answers arrive.
//
// If the job says what to do with a gradient that is not finite or too long (gradient_guard.h), or
// if the caller may leave the clock out, no block leaves in step 1. The whole gradient is checked
// in End, and then all blocks leave.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/block_cuts.h"
#include "common/buffer.h"
#include "common/interval_set.h"
#include "common/status.h"
#include "exchange/exchange.h"
#include "exchange/final_blocks.h"
#include "exchange/finite.h"
#include "exchange/gradient_guard.h"
#include "exchange/running_values.h"

namespace leeway {
namespace {

class GradientExchange : public Exchange {
 public:
  explicit GradientExchange(const ExchangeContext& context)
      : Exchange(context),
        guards_(GuardsGradients(context.job.exchange()) || context.may_leave_out),
        in_parts_(!BlockCutsOf(context.schema).empty()),
        contribution_(context.carrier.MakeVector()),
        final_(context.carrier.layout()) {
    if (context.program) running_.emplace(context.job, context.schema, context.length);
  }

  std::span<float> contribution() override { return contribution_.span(); }

  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    next_ = clock;
    StateIsBefore(clock);
    return ReadWeights(carrier(), clock, context().weights);
  }

  void StartClock(uint64_t clock) override {
    step_ = {.clock = clock, .examples = context().job.data().batch_size()};
    next_ = clock + 1;
    final_.Reset();
    told_ = {};
    unknown_.assign(carrier().layout().blocks(), false);
    kept_back_.clear();
  }

  absl::StatusOr<bool> Wait(std::span<const ElementRange> elements, Time deadline) override {
    carrier().Poll();
    return carrier().Await(elements, deadline);
  }

  void SetExamples(uint64_t examples) override {
    if (!step_.open) step_.examples = examples;
  }

  absl::Status SetRates(ContributionRates rates) override {
    if ((step_.open || told_.size() > 0) && !in_parts_) {
      return absl::UnimplementedError(
          "the rates come too late: some elements of this clock are already final; give the rates "
          "before the first call of leeway_final");
    }
    if (told_.size() > 0 && guards_) {
      return absl::InvalidArgumentError(
          "the clock's gradient is exchanged in parts, one for each of several optimizers, but "
          "exchange.max_norm and exchange.on_bad_gradient need the whole gradient: leave these "
          "keys out of the job");
    }
    RETURN_IF_ERROR(CheckSkips(rates));
    step_.rates = std::move(rates);
    return absl::OkStatus();
  }

  absl::StatusOr<bool> Open(Time deadline) override {
    if (step_.open) return true;
    ASSIGN_OR_RETURN(const bool settled, SettleUntil(deadline));
    if (!settled) return false;
    RETURN_IF_ERROR(context().listener.OnBegin(step_.clock));
    carrier().Begin(step_.clock);
    step_.open = true;
    return true;
  }

  absl::Status Final(std::span<const ElementRange> elements, bool known_finite) override {
    for (const ElementRange& range : elements) RETURN_IF_ERROR(NoteFinal(range));
    carrier().Poll();
    return Finish(elements, known_finite);
  }

  void LeaveOut(std::string why) override { step_.why_left_out = std::move(why); }

  absl::StatusOr<bool> End(uint64_t examples, Time deadline) override {
    if (!step_.open) step_.examples = examples;
    ASSIGN_OR_RETURN(const bool open, Open(deadline));
    if (!open) return false;
    RETURN_IF_ERROR(FinishRest());
    if (guards_) RETURN_IF_ERROR(SendGuarded());
    RETURN_IF_ERROR(carrier().Finish());
    return true;
  }

  absl::StatusOr<bool> SettleUntil(Time deadline) override {
    if (!carrier().under_way()) return true;
    ASSIGN_OR_RETURN(const bool answered, carrier().AwaitAll(deadline));
    if (!answered) return false;
    context().listener.OnComplete(carrier().End());
    StateIsBefore(carrier().clock() + 1);
    return true;
  }

  absl::StatusOr<bool> ReadAgain(std::span<float> into, Time deadline) override {
    ASSIGN_OR_RETURN(const bool settled, SettleUntil(deadline));
    if (!settled) return false;
    ASSIGN_OR_RETURN(const std::optional<uint64_t> version, carrier().Read(next_, into, deadline));
    return version.has_value();
  }

  absl::Status ReadLatest() override { return carrier().ReadLatest(context().weights); }

  // If the other workers go on without a lost worker, its saved state is older than the clock at
  // which it continues. This is acceptable if the state has no residual, but only a program's own
  // bytes.
  bool TakesOlderState() const override {
    return context().program && context().job.consistency().mode() != v1::CONSISTENCY_MODE_SYNC &&
           !carrier().keeps_residual();
  }

  bool open() const override { return step_.open; }
  bool left_out() const override { return step_.judged.verdict == GuardedGradient::kLeftOut; }
  bool clipped() const override { return step_.judged.verdict == GuardedGradient::kClipped; }
  std::string why() const override { return step_.judged.why; }

 private:
  struct Step {
    uint64_t clock = 0;
    uint64_t examples = 0;
    ContributionRates rates = nullptr;
    // True if the clock's exchange has begun.
    bool open = false;
    // The caller's reason to leave the clock out. Empty if there is no such reason.
    std::string why_left_out = {};
    GuardedGradient judged = {};
  };

  // Refuses to skip elements of a block that keeps a residual: the skipped elements' residual would
  // be sent with the rest of the block, and so be lost.
  absl::Status CheckSkips(const ContributionRates& rates) const {
    const bool skips =
        rates != nullptr &&
        std::any_of(rates->begin(), rates->end(), [](const UpdatePart& part) { return part.skip; });
    if (!skips || !carrier().keeps_residual()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "this clock leaves some tensors out of its update, but the codec of "
        "compression.contributions keeps what is lost for later clocks: set "
        "compression.contributions to none, bf16 or fp16");
  }

  absl::Status NoteFinal(const ElementRange& range) {
    const uint64_t before = told_.size();
    told_.Add({range.offset, range.end()});
    if (told_.size() == before + range.count) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("elements ", range.offset, " to ", range.end(),
                     " of the contribution: some of these elements were already final"));
  }

  // Sends the blocks that are complete with these elements.
  absl::Status Finish(std::span<const ElementRange> elements, bool known_finite) {
    if (!known_finite) NoteUnknown(elements);
    for (const BlockRange& blocks : final_.Add(elements)) {
      if (guards_) {
        kept_back_.push_back(blocks);
      } else {
        RETURN_IF_ERROR(Send(blocks));
      }
    }
    return absl::OkStatus();
  }

  void NoteUnknown(std::span<const ElementRange> elements) {
    for (const ElementRange& range : elements) {
      const BlockRange blocks = BlocksOf(carrier().layout(), range);
      std::fill_n(unknown_.begin() + blocks.first, blocks.count, true);
    }
  }

  absl::Status Send(const BlockRange& blocks) {
    RETURN_IF_ERROR(Open(Time::max()).status());
    const ElementRange range = ElementsOf(carrier().layout(), blocks);
    const auto unknown = unknown_.begin() + blocks.first;
    if (std::find(unknown, unknown + blocks.count, true) != unknown + blocks.count) {
      RETURN_IF_ERROR(CheckFinite(context().schema, "the gradient", range.offset,
                                  contribution_.span().subspan(range.offset, range.count)));
    }
    MakeMeans(range);
    carrier().Contribute(blocks, step_.examples, step_.rates, contribution_.span(),
                         context().weights);
    return absl::OkStatus();
  }

  void MakeMeans(const ElementRange& range) {
    if (!running_) return;
    running_->MakeMeans(range, step_.examples, context().weights, contribution_.span());
  }

  // Finishes the elements that were not declared final yet.
  absl::Status FinishRest() {
    std::vector<ElementRange> rest;
    uint64_t from = 0;
    for (const Interval& interval : told_.Remove({0, contribution_.size()})) {
      if (interval.first > from) rest.push_back({from, interval.first - from});
      from = interval.end;
    }
    if (from < contribution_.size()) rest.push_back({from, contribution_.size() - from});
    return Finish(rest, false);
  }

  absl::Status SendGuarded() {
    const std::span<float> values = contribution_.span();
    if (!step_.why_left_out.empty()) {
      step_.judged = leeway::LeaveOut(values, std::move(step_.why_left_out));
    } else {
      ASSIGN_OR_RETURN(step_.judged,
                       GuardGradient(context().job.exchange(), context().schema, values));
    }
    if (!left_out()) MakeMeans({0, values.size()});
    for (const BlockRange& blocks : kept_back_) {
      carrier().Contribute(blocks, left_out() ? 0 : step_.examples, step_.rates, values,
                           context().weights);
    }
    return absl::OkStatus();
  }

  std::optional<RunningValues> running_;
  const bool guards_;
  // True if the program decides where blocks begin, so that it can exchange parts of the model at
  // different moments of a clock.
  const bool in_parts_;
  FloatBuffer contribution_;
  Step step_;
  FinalBlocks final_;
  // The elements that were declared final.
  IntervalSet told_;
  // By block: true if not all of its values are known to be finite.
  std::vector<bool> unknown_;
  // With a guard: the blocks that are kept back until the whole gradient is checked, in the order
  // in which they would have left.
  std::vector<BlockRange> kept_back_;
  // The clock after the current or latest one.
  uint64_t next_ = 0;
};

}  // namespace

std::unique_ptr<Exchange> MakeGradientExchange(const ExchangeContext& context) {
  return std::make_unique<GradientExchange>(context);
}

}  // namespace leeway
