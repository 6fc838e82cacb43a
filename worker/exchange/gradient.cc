// The mean gradient of `accumulation` batches: sum_i n_i g_i / sum_i n_i, where n_i is a batch's
// number of examples. With one batch this is the textbook's parameter server (Li et al. 2014);
// Downpour SGD (Dean et al. 2012), SSP (Ho et al. 2013) and synchronous SGD differ from it in
// consistency only.

#include <memory>
#include <optional>
#include <utility>

#include "common/buffer.h"
#include "common/status.h"
#include "common/update/schedule.h"
#include "worker/exchange/exchanges.h"
#include "worker/exchange/steps.h"

namespace leeway {
namespace {

class GradientExchange : public Exchange {
 public:
  explicit GradientExchange(const ExchangeContext& context)
      : context_(context),
        schedule_(Schedule::OverClocks(context.job.update(), context.length)),
        weights_(context.schema.total()),
        contribution_(context.schema.total()) {}

  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    ASSIGN_OR_RETURN(const auto read,
                     context_.client.Wait(context_.client.Pull(clock, weights_.span())));
    return read.version;
  }

  absl::StatusOr<ClockReport> Run(const ClockSpan& span) override {
    ClockReport report;
    report.learning_rate = schedule_.LearningRate(span.clock);
    for (uint64_t i = 0; i < span.steps; ++i) {
      RETURN_IF_ERROR(AddBatch(span.clock, span.first_step + i, i == 0, report));
    }
    RETURN_IF_ERROR(CheckFinite(context_, span.clock, "the gradient", contribution_.span()));
    RETURN_IF_ERROR(PushPull(context_, span.clock, contribution_.span(), weights_.span(), report));
    return report;
  }

  std::span<const float> weights() const override { return weights_.span(); }
  absl::Status ReadLatest() override {
    return context_.client.Wait(context_.client.PullLatest(weights_.span())).status();
  }

 private:
  // The first batch writes the contribution; a later one moves it towards its own gradient by its
  // share of the examples so far, which keeps the weighted mean.
  absl::Status AddBatch(uint64_t clock, uint64_t step, bool first, ClockReport& report) {
    if (!first && next_.size() == 0) next_ = FloatBuffer(contribution_.size());
    FloatBuffer& target = first ? contribution_ : next_;
    ASSIGN_OR_RETURN(const StepResult result,
                     RunStep(context_, clock, step, weights_.span(), target.span(), report));
    if (first || result.examples == 0) return absl::OkStatus();
    const auto share = static_cast<float>(static_cast<double>(result.examples) /
                                          static_cast<double>(report.examples));
    float* mean = contribution_.data();
    const float* gradient = next_.data();
    for (size_t i = 0; i < contribution_.size(); ++i) mean[i] += share * (gradient[i] - mean[i]);
    return absl::OkStatus();
  }

  const ExchangeContext context_;
  const Schedule schedule_;
  FloatBuffer weights_;
  FloatBuffer contribution_;
  // Of a second batch; empty until there is one.
  FloatBuffer next_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Exchange>> MakeGradientExchange(const ExchangeContext& context) {
  return std::make_unique<GradientExchange>(context);
}

}  // namespace leeway
