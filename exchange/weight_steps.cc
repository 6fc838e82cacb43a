// Exchanges the weights that another program's steps have trained: delta and elastic exchanges
// (worker/exchange/delta.cc and elastic.cc do the same for Leeway's own steps).

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/buffer.h"
#include "common/status.h"
#include "exchange/finite.h"
#include "exchange/open_exchange.h"
#include "exchange/read_weights.h"
#include "exchange/running_values.h"
#include "exchange/step_exchanges.h"

namespace leeway {
namespace {

class WeightSteps : public StepExchange {
 public:
  explicit WeightSteps(const StepExchangeContext& context)
      : StepExchange(context),
        exchange_(context.registration.job().exchange()),
        running_(context.registration),
        answer_(context.weights.size()),
        contribution_(context.client.MakeVector()),
        open_(context.client, [] { return std::chrono::steady_clock::now(); }) {}

  // Empty, because the exchange makes the contribution from the weights.
  std::span<float> contribution() override { return {}; }

  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    ASSIGN_OR_RETURN(const uint64_t version, ReadWeights(context().client, clock, answer_.span()));
    // An elastic worker goes on from its own weights, if it has them.
    if (!TakeLoadedWeights()) std::copy_n(answer_.data(), answer_.size(), context().weights.data());
    return version;
  }

  void StartClock(uint64_t clock) override {
    clock_ = clock;
    sent_ = false;
  }
  absl::StatusOr<bool> Wait(ElementRange, Time) override { return true; }
  void SetExamples(uint64_t) override {}
  absl::Status Final(ElementRange) override {
    return absl::UnimplementedError(
        "the job's exchange is not a gradient exchange: Leeway makes the contribution from the "
        "weights");
  }

  absl::StatusOr<bool> End(uint64_t examples, Time deadline) override {
    if (!sent_) RETURN_IF_ERROR(Send(examples));
    sent_ = true;
    ASSIGN_OR_RETURN(const bool answered, open_.WaitForAll(deadline));
    if (!answered) return false;
    context().listener.OnComplete(open_.End());
    TakeAnswer();
    return true;
  }

  absl::StatusOr<bool> SettleUntil(Time) override { return true; }

  bool Abandon() override {
    open_.Abandon();
    return true;
  }

  absl::Status ReadLatest() override {
    RETURN_IF_ERROR(context().client.Wait(context().client.PullLatest(answer_.span())).status());
    std::copy_n(answer_.data(), answer_.size(), context().weights.data());
    return absl::OkStatus();
  }

 private:
  bool keeps_weights() const override { return exchange_.has_elastic(); }

  absl::Status Send(uint64_t examples) {
    const v1::ModelSchema& schema = context().registration.schema();
    const char* what = exchange_.has_elastic() ? "the local weight" : "the change";
    MakeContribution(examples);
    RETURN_IF_ERROR(CheckFinite(schema, what, 0, contribution_.span()));
    RETURN_IF_ERROR(context().listener.OnBegin(clock_));
    open_.Begin(clock_, examples);
    open_.Send(context().client.AllBlocks(), contribution_.span(), answer_.span());
    return absl::OkStatus();
  }

  void MakeContribution(uint64_t examples) {
    const std::span<const float> local = context().weights;
    if (exchange_.has_elastic()) {
      std::copy(local.begin(), local.end(), contribution_.data());
      return;
    }
    const uint64_t trained = context().registration.schema().trained();
    const float* start = answer_.data();
    float* change = contribution_.data();
    for (uint64_t i = 0; i < trained; ++i) change[i] = start[i] - local[i];
    std::copy(local.begin() + static_cast<std::ptrdiff_t>(trained), local.end(), change + trained);
    running_.MakeMeans({0, local.size()}, examples, answer_.span(), contribution_.span());
  }

  // An elastic worker's weights move towards the centre as it was before its contribution.
  void TakeAnswer() {
    float* local = context().weights.data();
    if (!exchange_.has_elastic()) {
      std::copy_n(answer_.data(), answer_.size(), local);
      return;
    }
    const auto alpha = static_cast<float>(exchange_.elastic().alpha());
    const float* centre = answer_.data();
    for (uint64_t i = 0; i < answer_.size(); ++i) local[i] -= alpha * (local[i] - centre[i]);
  }

  const v1::Exchange& exchange_;
  const RunningValues running_;
  // The servers' latest answer: the weights from which a delta starts, or an elastic worker's
  // centre.
  FloatBuffer answer_;
  FloatBuffer contribution_;
  uint64_t clock_ = 0;
  bool sent_ = false;
  OpenExchange open_;
};

}  // namespace

std::unique_ptr<StepExchange> MakeWeightSteps(const StepExchangeContext& context) {
  return std::make_unique<WeightSteps>(context);
}

}  // namespace leeway
