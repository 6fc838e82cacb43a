// The mean gradient of `accumulation` batches: sum_i n_i g_i / sum_i n_i, where n_i is a batch's
// number of examples. Averaged elements are combined as a running value would combine the batches
// (common/update/averaging.h). With one batch this is the classic parameter server (Li et al.
// 2014). Downpour SGD (Dean et al. 2012), SSP (Ho et al. 2013) and synchronous SGD use the same
// exchange and differ in consistency only.
//
// The exchange overlaps with the computation, from the backward pass of one clock to the forward
// pass of the next:
// 1. The last batch's backward pass finishes a layer, or a panel of a large layer (OnFinal). Each
//    block whose elements are all final is checked and sent while the backward pass computes the
//    rest.
// 2. Run returns when all blocks have been sent. Their answers arrive while the next batch is
//    loaded.
// 3. The next forward pass waits for the blocks of each layer, or of each panel, before it reads
//    them (BeforeForward).
// 4. The exchange ends with that forward pass (AfterForward). Only then does the next exchange
//    begin.
//
// No copy of the vectors is needed. An answer overwrites a block's weights while the backward pass
// still computes other panels, but nothing reads that block's weights any more. The next
// contribution overwrites a block's elements only after the layer's next forward pass, when the
// servers have answered the block. So the result does not depend on when answers arrive.
//
// If a device encodes the contribution (device_encoder.h), the encoding of a block runs after the
// kernels that compute the block's last elements, and only the encoded bytes are copied to the host
// (BringDown).
//
// With workers.per_host: combine, other workers of this host take part in steps 1 and 2
// (exchange/open_exchange.h). Run then returns when this worker has handed in its part, or
// has sent the sum for the group.
//
// If the job says what to do with a gradient that is not finite or too long (gradient_guard.h), no
// block leaves in step 1. The whole gradient is checked after the backward pass, and then all
// blocks leave. The same holds in fp16 (gradient_scale.h), where any gradient may overflow; then
// the whole clock is left out.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/buffer.h"
#include "common/status.h"
#include "common/update/averaging.h"
#include "common/update/schedule.h"
#include "exchange/final_blocks.h"
#include "exchange/gradient_guard.h"
#include "exchange/open_exchange.h"
#include "worker/exchange/device_encoder.h"
#include "worker/exchange/exchanges.h"
#include "worker/exchange/gradient_scale.h"
#include "worker/exchange/local_state.h"
#include "worker/exchange/state_fit.h"
#include "worker/exchange/steps.h"

namespace leeway {
namespace {

class GradientExchange : public Exchange, private TrainObserver {
 public:
  explicit GradientExchange(const ExchangeContext& context)
      : context_(context),
        schedule_(Schedule::OverClocks(context.job.update(), context.length,
                                       context.job.workers().count())),
        averaged_(AveragedElementsOf(context.schema)),
        weights_(context.schema.total()),
        contribution_(MakeContribution(context)),
        weights_pinned_(context.backend.Pin(weights_.span())),
        contribution_pinned_(context.backend.Pin(contribution_.span())),
        scale_(context_),
        guards_(GuardsGradients(context.job.exchange()) || scale_.active()),
        made_(context.client.layout()),
        final_(context.client.layout()),
        open_(context.client, context.now, context.group) {}

  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    ASSIGN_OR_RETURN(const uint64_t version, ReadWeights(context_.client, clock, weights_.span()));
    kept_clock_ = clock;
    return version;
  }

  absl::StatusOr<ClockReport> Run(const ClockSpan& span) override {
    ClockReport report;
    report.learning_rate = schedule_.LearningRate(span.clock);
    for (uint64_t i = 0; i < span.steps; ++i) {
      // Only the last of the steps without a batch is needed, because it sends.
      if (report.none_left && i + 1 < span.steps) continue;
      batch_ = {.clock = span.clock,
                .first = i == 0,
                .last = i + 1 == span.steps,
                .examples_before = report.examples,
                .loss_scale = scale_.At(span.clock)};
      RETURN_IF_ERROR(AddBatch(span.first_step + i, report));
    }
    if (guards_) RETURN_IF_ERROR(SendGuarded(report));
    RETURN_IF_ERROR(open_.SendRest());
    return report;
  }

  absl::Status Settle() override {
    if (!open_.under_way()) return absl::OkStatus();
    RETURN_IF_ERROR(open_.WaitForAll());
    context_.listener.OnComplete(open_.End());
    kept_clock_ = open_.clock() + 1;
    return absl::OkStatus();
  }

  bool Abandon() override {
    open_.Abandon();
    return true;
  }
  void Drop(uint64_t clock) override {
    if (context_.client.keeps_residual()) context_.client.UndoResidual(clock);
  }

  // Saves the residual of compressed contributions, if there is one. Nothing else outlives a clock.
  absl::StatusOr<std::string> SaveState() const override {
    if (!context_.client.keeps_residual()) return std::string();
    LocalState state = Kept();
    RETURN_IF_ERROR(context_.client.ReadResidual(kept_clock_, state.vectors[0].span()));
    return SerializeState(state);
  }
  absl::Status LoadState(const std::string& bytes) override {
    if (!context_.client.keeps_residual()) return absl::OkStatus();
    LocalState state = Kept();
    RETURN_IF_ERROR(TakeUpState(bytes, contribution_.size(), state).status());
    return context_.client.SetResidual(state.vectors[0].span());
  }

  std::span<const float> weights() const override { return weights_.span(); }
  absl::Status ReadLatest() override {
    return context_.client.Wait(context_.client.PullLatest(weights_.span())).status();
  }

 private:
  LocalState Kept() const {
    return LocalState::Zeros({.exchange = "gradient", .residual = true}, contribution_.size());
  }

  struct Batch {
    uint64_t clock = 0;
    // Whether this batch is the first one, and whether it is the last one, of its clock.
    bool first = false;
    bool last = false;
    uint64_t examples_before = 0;
    float loss_scale = 1;
    // The batch's share of the clock's examples so far, known after the batch's forward pass.
    float share = 0;
  };

  absl::Status AddBatch(uint64_t step, ClockReport& report) {
    if (!batch_.first && next_.size() == 0) {
      next_ = FloatBuffer(contribution_.size());
      next_pinned_ = context_.backend.Pin(next_.span());
    }
    FloatBuffer& target = batch_.first ? contribution_ : next_;
    made_.Reset();
    on_device_ = nullptr;
    RETURN_IF_ERROR(RunStep(context_, batch_.clock, step,
                            {weights_.span(), target.span(), Home::kHost, batch_.loss_scale},
                            report, this)
                        .status());
    if (!batch_.last) {
      AddShare({0, contribution_.size()});
    } else if (final_.missing() > 0) {
      return absl::InternalError(absl::StrCat(Who(context_, batch_.clock), ": ", final_.missing(),
                                              " blocks never became final"));
    }
    return absl::OkStatus();
  }

  absl::Status BeforeForward(std::span<const ElementRange> elements) override {
    open_.Poll();
    return open_.WaitFor(elements);
  }

  // Starts the encoding of these elements' blocks. The forward pass has waited for all weights, so
  // the servers have answered the previous exchange and Settle does not block. Settle must come
  // before the encoding of the first block, because the residual can undo only one clock. For later
  // blocks this clock's own exchange is already under way.
  bool BringDown(std::span<const ElementRange> elements, const float* device) override {
    if (context_.encoder == nullptr) return false;
    if (open_.clock() != batch_.clock) Settle().IgnoreError();
    on_device_ = device;
    for (const BlockRange& blocks : made_.Add(elements)) {
      context_.encoder->Start(batch_.clock, blocks, device, contribution_.span());
    }
    return true;
  }

  absl::Status AfterForward(double loss_sum, uint64_t examples) override {
    RETURN_IF_ERROR(CheckLoss(context_, loss_sum, batch_.loss_scale));
    RETURN_IF_ERROR(Settle());
    if (batch_.first) BeginContribution(context_);
    const uint64_t all = batch_.examples_before + examples;
    batch_.share =
        examples == 0
            ? 0
            : static_cast<float>(static_cast<double>(examples) / static_cast<double>(all));
    if (!batch_.last) return absl::OkStatus();
    RETURN_IF_ERROR(context_.listener.OnBegin(batch_.clock));
    final_.Reset();
    unknown_.assign(context_.client.layout().blocks(), false);
    kept_back_.clear();
    open_.Begin(batch_.clock, all);
    return absl::OkStatus();
  }

  absl::Status OnFinal(std::span<const ElementRange> elements, bool known_finite) override {
    if (!batch_.last) return absl::OkStatus();
    open_.Poll();
    // If there are several batches, their mean is sent, and nothing has checked the mean.
    if (!known_finite || !batch_.first) NoteUnknown(elements);
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
      const BlockRange blocks = BlocksOf(context_.client.layout(), range);
      std::fill_n(unknown_.begin() + blocks.first, blocks.count, true);
    }
  }

  absl::StatusOr<GuardedGradient> Guard(ClockReport& report) {
    ASSIGN_OR_RETURN(std::optional<std::string> overflow,
                     scale_.Overflow(batch_.clock, contribution_.span(), report));
    if (overflow.has_value()) return LeaveOut(contribution_.span(), *std::move(overflow));
    auto guarded = GuardGradient(context_.job.exchange(), context_.schema, contribution_.span());
    if (!guarded.ok()) {
      // The guard also reports a gradient that is finite but too long.
      const bool finite = NotFinite(context_.schema, "", 0, contribution_.span()).empty();
      return finite ? guarded.status() : SuggestBf16(context_, guarded.status());
    }
    if (guarded->verdict != GuardedGradient::kLeftOut && !report.bad_loss.empty()) {
      return LeaveOut(contribution_.span(), std::move(report.bad_loss));
    }
    return guarded;
  }

  absl::Status SendGuarded(ClockReport& report) {
    AddShare({0, contribution_.size()});
    auto guarded = Guard(report);
    RETURN_IF_ERROR(Annotate(guarded.status(), Who(context_, batch_.clock)));
    report.left_out = guarded->verdict == GuardedGradient::kLeftOut;
    report.clipped = guarded->verdict == GuardedGradient::kClipped;
    report.why = std::move(guarded->why);
    for (const BlockRange& blocks : kept_back_) {
      if (report.left_out) {
        open_.Send(blocks, 0, contribution_.span(), weights_.span());
      } else {
        open_.Send(blocks, contribution_.span(), weights_.span());
      }
    }
    return absl::OkStatus();
  }

  absl::Status Send(const BlockRange& blocks) {
    const ElementRange range = ElementsOf(context_.client.layout(), blocks);
    AddShare(range);
    const auto unknown = unknown_.begin() + blocks.first;
    if (std::find(unknown, unknown + blocks.count, true) != unknown + blocks.count) {
      RETURN_IF_ERROR(BringDownAsItIs(range));
      RETURN_IF_ERROR(CheckFinite(context_.schema, "the gradient", range.offset,
                                  contribution_.span().subspan(range.offset, range.count)));
    }
    open_.Send(blocks, contribution_.span(), weights_.span());
    return absl::OkStatus();
  }

  // Copies values to the host, which has only their encoding, so that an error can name the bad
  // element.
  absl::Status BringDownAsItIs(const ElementRange& range) {
    if (on_device_ == nullptr) return absl::OkStatus();
    Backend& backend = context_.backend;
    backend.CopyToHost(Stream::kCompute, on_device_ + range.offset,
                       contribution_.span().subspan(range.offset, range.count));
    return backend.Await(backend.Record(Stream::kCompute));
  }

  // Adds the batch's gradient to the contribution. The first batch writes the contribution. A later
  // batch moves the contribution towards its own gradient by its share of the examples so far,
  // which keeps the weighted mean. Averaged elements are combined as a running value would weigh
  // the batches, one after the other.
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
    float* mean = contribution_.data();
    const float* gradient = next_.data();
    for (uint64_t i = begin; i < end; ++i) mean[i] += share * (gradient[i] - mean[i]);
  }

  const ExchangeContext context_;
  const Schedule schedule_;
  const std::vector<AveragedElements> averaged_;
  FloatBuffer weights_;
  FloatBuffer contribution_;
  // The gradient of a second or later batch. Empty until there is such a batch.
  FloatBuffer next_;
  // These objects are destroyed before the memory that they pin.
  PinnedMemory weights_pinned_, contribution_pinned_, next_pinned_;

  // Finds overflows in fp16.
  GradientScale scale_;
  const bool guards_;
  // The batch of the step in progress.
  Batch batch_;
  // If the device encodes: the blocks that the queued work completes, and the contribution on the
  // device if the batch has one.
  FinalBlocks made_;
  const float* on_device_ = nullptr;
  FinalBlocks final_;
  // Whether some part of a block may not be finite, for each block.
  std::vector<bool> unknown_;
  // With a guard or in fp16: the blocks that are kept back until the whole gradient is checked, in
  // the order in which they would have left.
  std::vector<BlockRange> kept_back_;
  // The exchange of the latest clock.
  OpenExchange open_;
  // The clock before which the saved state was the current one.
  uint64_t kept_clock_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Exchange>> MakeGradientExchange(const ExchangeContext& context) {
  return std::make_unique<GradientExchange>(context);
}

}  // namespace leeway
