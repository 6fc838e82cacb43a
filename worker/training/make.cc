#include <memory>

#include "common/status.h"
#include "config/length.h"
#include "worker/training/clock_runner.h"
#include "worker/training/device_encoder.h"

namespace leeway {

namespace {

absl::StatusOr<std::shared_ptr<DeviceEncoder>> MakeEncoder(const RunnerContext& context) {
  const CodecPlan* const plan = context.carrier.codec_plan();
  const BlockLayout& layout = context.carrier.layout();
  if (context.backend.shares_host_memory() || plan == nullptr) return nullptr;
  if (!EncodesOnDevice(context.job, context.length.steps_per_clock(), layout, *plan)) {
    return nullptr;
  }
  return DeviceEncoder::Make(context.backend, layout, *plan);
}

absl::StatusOr<std::unique_ptr<ClockRunner>> MakeByType(const RunnerContext& context) {
  if (IsSpread(context.job.exchange())) return MakeSpreadRunner(context);
  switch (context.job.exchange().type_case()) {
    case v1::Exchange::kGradient:
      return MakeGradientRunner(context);
    case v1::Exchange::kDelta:
    case v1::Exchange::kElastic:
      return MakeWeightRunner(context);
    case v1::Exchange::TYPE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "exchange: this build does not know the type of the job's exchange");
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClockRunner>> MakeClockRunner(const RunnerContext& context) {
  RunnerContext whole = context;
  ASSIGN_OR_RETURN(whole.encoder, MakeEncoder(context));
  ASSIGN_OR_RETURN(auto runner, MakeByType(whole));
  if (whole.encoder != nullptr) context.carrier.EncodeBy(*whole.encoder);
  return runner;
}

}  // namespace leeway
