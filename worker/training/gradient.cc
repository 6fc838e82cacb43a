// The steps of a gradient exchange (exchange/gradient.cc). Batches of a clock are added up to their
// mean: sum_i n_i g_i / sum_i n_i, where n_i is a batch's number of examples. Averaged elements get
// what a running value would make of the batches (common/update/averaging.h).
//
// The last batch's backward pass hands in each layer, or each panel of a large layer, as it is
// finished (OnFinal). The next forward pass waits for the weights of each layer, or of each panel,
// before it reads them (BeforeForward). The exchange ends at the end of that forward pass
// (AfterForward).
//
// If a device encodes the contribution (device_encoder.h), the encoding of a block runs after the
// kernels that compute the block's last elements, and only the encoded bytes are copied to the host
// (BringDown).
//
// In fp16 (gradient_scale.h) any gradient may overflow; then the whole clock is left out.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/buffer.h"
#include "common/status.h"
#include "common/update/averaging.h"
#include "common/update/schedule.h"
#include "exchange/exchange.h"
#include "exchange/final_blocks.h"
#include "worker/training/clock_runner.h"
#include "worker/training/device_encoder.h"
#include "worker/training/gradient_scale.h"
#include "worker/training/steps.h"

namespace leeway {
namespace {

class GradientRunner : public ClockRunner, private TrainObserver {
 public:
  explicit GradientRunner(const RunnerContext& context)
      : context_(context),
        schedule_(Schedule::OverClocks(context.job.update(), context.length,
                                       context.job.workers().count())),
        averaged_(AveragedElementsOf(context.schema)),
        weights_(context.schema.total()),
        weights_pinned_(context.backend.Pin(weights_.span())),
        scale_(context_),
        made_(context.carrier.layout()) {}

  absl::Status Open() {
    ASSIGN_OR_RETURN(exchange_, MakeExchange({.job = context_.job,
                                              .schema = context_.schema,
                                              .length = context_.length,
                                              .carrier = context_.carrier,
                                              .listener = context_.listener,
                                              .weights = weights_.span(),
                                              .may_leave_out = scale_.active()}));
    contribution_pinned_ = context_.backend.Pin(contribution());
    return absl::OkStatus();
  }

  ClockExchange& exchange() override { return *exchange_; }
  std::span<const float> weights() override { return weights_.span(); }

  absl::StatusOr<ClockReport> Run(const ClockSpan& span) override {
    ClockReport report;
    report.learning_rate = schedule_.LearningRate(span.clock);
    exchange_->StartClock(span.clock);
    for (uint64_t i = 0; i < span.steps; ++i) {
      // Only the last of the steps without a batch must run, because it sends the contribution.
      if (report.none_left && i + 1 < span.steps) continue;
      batch_ = {.clock = span.clock,
                .first = i == 0,
                .last = i + 1 == span.steps,
                .examples_before = report.examples,
                .loss_scale = scale_.At(span.clock)};
      RETURN_IF_ERROR(AddBatch(span.first_step + i, report));
    }
    RETURN_IF_ERROR(Annotate(End(report), Who(context_, span.clock)));
    return report;
  }

 private:
  struct Batch {
    uint64_t clock = 0;
    // True for the first batch and for the last batch of a clock.
    bool first = false;
    bool last = false;
    uint64_t examples_before = 0;
    float loss_scale = 1;
    // The batch's share of the clock's examples so far, known after the batch's forward pass.
    float share = 0;
    // The number of elements that are final.
    uint64_t final = 0;
  };

  std::span<float> contribution() { return exchange_->contribution(); }

  absl::Status AddBatch(uint64_t step, ClockReport& report) {
    if (!batch_.first && next_.size() == 0) {
      next_ = FloatBuffer(contribution().size());
      next_pinned_ = context_.backend.Pin(next_.span());
    }
    const std::span<float> target = batch_.first ? contribution() : next_.span();
    made_.Reset();
    on_device_ = nullptr;
    RETURN_IF_ERROR(RunStep(context_, batch_.clock, step,
                            {weights_.span(), target, Home::kHost, batch_.loss_scale}, report, this)
                        .status());
    if (!batch_.last) {
      AddShare({0, contribution().size()});
    } else if (batch_.final != contribution().size()) {
      return absl::InternalError(absl::StrCat(Who(context_, batch_.clock), ": ",
                                              contribution().size() - batch_.final,
                                              " elements never became final"));
    }
    return absl::OkStatus();
  }

  absl::Status BeforeForward(std::span<const ElementRange> elements) override {
    return exchange_->Wait(elements, Time::max()).status();
  }

  // Starts the encoding of these elements' blocks. The forward pass has waited for all weights, so
  // the previous exchange is answered, and Settle does not block. Settle must come before the
  // encoding of the clock's first block, because the residual can undo only one clock. For later
  // blocks this clock's own exchange is already under way, so there is nothing to settle.
  bool BringDown(std::span<const ElementRange> elements, const float* device) override {
    if (context_.encoder == nullptr) return false;
    if (!exchange_->open()) exchange_->Settle().IgnoreError();
    on_device_ = device;
    for (const BlockRange& blocks : made_.Add(elements)) {
      context_.encoder->Start(batch_.clock, blocks, device, contribution());
    }
    return true;
  }

  absl::Status AfterForward(double loss_sum, uint64_t examples) override {
    RETURN_IF_ERROR(CheckLoss(context_, loss_sum, batch_.loss_scale));
    RETURN_IF_ERROR(exchange_->Settle());
    if (batch_.first) context_.carrier.Renew();
    const uint64_t all = batch_.examples_before + examples;
    batch_.share =
        examples == 0
            ? 0
            : static_cast<float>(static_cast<double>(examples) / static_cast<double>(all));
    if (!batch_.last) return absl::OkStatus();
    exchange_->SetExamples(all);
    return exchange_->Open(Time::max()).status();
  }

  absl::Status OnFinal(std::span<const ElementRange> elements, bool known_finite) override {
    if (!batch_.last) return absl::OkStatus();
    for (const ElementRange& range : elements) {
      AddShare(range);
      batch_.final += range.count;
      if (!known_finite) RETURN_IF_ERROR(BringDownAsItIs(range));
    }
    // If the clock has several batches, their mean is sent, and nobody has checked whether the mean
    // is finite.
    return exchange_->Final(elements, known_finite && batch_.first);
  }

  // Copies values to the host, so that an error can name the bad element. Otherwise the host has
  // only the encoded values.
  absl::Status BringDownAsItIs(const ElementRange& range) {
    if (on_device_ == nullptr) return absl::OkStatus();
    Backend& backend = context_.backend;
    backend.CopyToHost(Stream::kCompute, on_device_ + range.offset,
                       contribution().subspan(range.offset, range.count));
    return backend.Await(backend.Record(Stream::kCompute));
  }

  absl::Status End(ClockReport& report) {
    ASSIGN_OR_RETURN(std::optional<std::string> overflow,
                     scale_.Overflow(batch_.clock, contribution(), report));
    if (overflow.has_value()) {
      exchange_->LeaveOut(*std::move(overflow));
    } else if (!report.bad_loss.empty() && IsFinite()) {
      exchange_->LeaveOut(report.bad_loss);
    }
    const absl::Status ended = exchange_->End(report.examples, Time::max()).status();
    // The exchange also refuses a gradient that is finite but too long.
    if (!ended.ok()) return IsFinite() ? ended : SuggestBf16(context_, ended);
    report.left_out = exchange_->left_out();
    report.clipped = exchange_->clipped();
    report.why = exchange_->why();
    return absl::OkStatus();
  }

  bool IsFinite() { return NotFinite(context_.schema, "", 0, contribution()).empty(); }

  // Adds the batch's gradient to the contribution. The first batch writes the contribution. A later
  // batch moves the contribution towards its own gradient by its share of the examples so far,
  // which keeps the weighted mean. For averaged elements, weighs the batches one after the other,
  // as a running value does.
  void AddShare(const ElementRange& range) {
    if (batch_.first || batch_.share == 0) return;
    const uint64_t trained = std::min(range.end(), context_.schema.trained());
    Move(range.offset, trained, batch_.share);
    const double before = Batches(context_, batch_.examples_before);
    for (const AveragedElements& each : Within(averaged_, range)) {
      Move(each.range.offset, each.range.end(),
           static_cast<float>(JoiningShare(each.momentum, before)));
    }
  }
  void Move(uint64_t begin, uint64_t end, float share) {
    float* mean = contribution().data();
    const float* gradient = next_.data();
    for (uint64_t i = begin; i < end; ++i) mean[i] += share * (gradient[i] - mean[i]);
  }

  const RunnerContext context_;
  const Schedule schedule_;
  const std::vector<AveragedElements> averaged_;
  FloatBuffer weights_;
  std::unique_ptr<Exchange> exchange_;
  // The gradient of a second or later batch. Empty until there is such a batch.
  FloatBuffer next_;
  // These objects are destroyed before the memory that they pin.
  PinnedMemory weights_pinned_, contribution_pinned_, next_pinned_;

  // Finds overflows in fp16.
  GradientScale scale_;
  // The batch of the step in progress.
  Batch batch_;
  // If the device encodes: the blocks that the queued work completes, and the contribution on the
  // device (null if there is none).
  FinalBlocks made_;
  const float* on_device_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ClockRunner>> MakeGradientRunner(const RunnerContext& context) {
  auto runner = std::make_unique<GradientRunner>(context);
  RETURN_IF_ERROR(runner->Open());
  return runner;
}

}  // namespace leeway
