// Exchanges the weights that another program's steps have trained: delta and elastic exchanges.
// worker/training/weights.cc does the same for Leeway's own steps, whose weights are on a device.
// Both use the same formulas.

#include <algorithm>

#include "common/buffer.h"
#include "common/status.h"
#include "exchange/exchange.h"
#include "exchange/finite.h"
#include "exchange/running_values.h"
#include "exchange/weight_formulas.h"

namespace leeway {
namespace {

class WeightExchange : public Exchange {
 public:
  explicit WeightExchange(const ExchangeContext& context)
      : Exchange(context),
        exchange_(context.job.exchange()),
        running_(context.job, context.schema, context.length),
        answer_(context.weights.size()),
        contribution_(context.carrier.MakeVector()) {}

  // Empty, because the exchange makes the contribution from the weights.
  std::span<float> contribution() override { return {}; }

  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    ASSIGN_OR_RETURN(const uint64_t version, ReadWeights(carrier(), clock, answer_.span()));
    // A worker that keeps weights goes on from its own, if it has them.
    const std::span<float> weights = context().weights;
    if (!TakeLoadedWeights()) {
      std::copy_n(answer_.data(), answer_.size(), weights.data());
    } else if (!exchange_.has_elastic()) {
      std::ranges::copy(weights, answer_.data());
    }
    StateIsBefore(clock);
    return version;
  }

  void StartClock(uint64_t clock) override {
    clock_ = clock;
    sent_ = false;
  }
  absl::StatusOr<bool> Wait(std::span<const ElementRange>, Time) override { return true; }
  void SetExamples(uint64_t) override {}
  absl::Status Final(std::span<const ElementRange>, bool) override {
    return absl::UnimplementedError(
        "only a gradient exchange takes final elements (leeway_final): in this job's exchange, "
        "Leeway makes the contribution from the weights");
  }

  absl::StatusOr<bool> End(uint64_t examples, Time deadline) override {
    if (!sent_) RETURN_IF_ERROR(Send(examples));
    sent_ = true;
    ASSIGN_OR_RETURN(const bool answered, carrier().AwaitAll(deadline));
    if (!answered) return false;
    context().listener.OnComplete(carrier().End());
    TakeAnswer();
    StateIsBefore(clock_ + 1);
    return true;
  }

  absl::Status ReadLatest() override {
    RETURN_IF_ERROR(carrier().ReadLatest(answer_.span()));
    std::copy_n(answer_.data(), answer_.size(), context().weights.data());
    return absl::OkStatus();
  }

 private:
  bool keeps_weights() const override {
    return exchange_.has_elastic() || carrier().keeps_weights();
  }

  absl::Status Send(uint64_t examples) {
    const v1::ModelSchema& schema = context().schema;
    const char* what = exchange_.has_elastic() ? "the local weight" : "the change";
    MakeContribution(examples);
    RETURN_IF_ERROR(CheckFinite(schema, what, 0, contribution_.span()));
    RETURN_IF_ERROR(context().listener.OnBegin(clock_));
    carrier().Begin(clock_);
    carrier().Contribute({0, carrier().layout().blocks()}, examples, nullptr, contribution_.span(),
                         answer_.span());
    return carrier().Finish();
  }

  void MakeContribution(uint64_t examples) {
    const std::span<const float> local = context().weights;
    if (exchange_.has_elastic()) {
      std::copy(local.begin(), local.end(), contribution_.data());
      return;
    }
    MakeDelta(HostVectors(), {0, local.size()}, context().schema.trained(), answer_.data(),
              local.data(), contribution_.data());
    running_.MakeMeans({0, local.size()}, examples, answer_.span(), contribution_.span());
  }

  // An elastic worker's weights move towards the centre as it was before its contribution.
  void TakeAnswer() {
    float* local = context().weights.data();
    if (!exchange_.has_elastic()) {
      std::copy_n(answer_.data(), answer_.size(), local);
      return;
    }
    MoveToCentre(HostVectors(), {0, answer_.size()},
                 static_cast<float>(exchange_.elastic().alpha()), local, answer_.data(), local);
  }

  const v1::Exchange& exchange_;
  const RunningValues running_;
  // The servers' latest answer: the weights from which a delta starts, or an elastic worker's
  // centre.
  FloatBuffer answer_;
  FloatBuffer contribution_;
  uint64_t clock_ = 0;
  bool sent_ = false;
};

}  // namespace

std::unique_ptr<Exchange> MakeWeightExchange(const ExchangeContext& context) {
  return std::make_unique<WeightExchange>(context);
}

}  // namespace leeway
