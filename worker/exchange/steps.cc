#include "worker/exchange/steps.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/payload.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr char kAdvice[] = "; training has diverged: try a smaller learning rate, or warm-up";

// "dense_1/weight[12]": the element's place in its tensor, as a flat index.
std::string NameOf(const v1::ModelSchema& schema, uint64_t element) {
  const v1::TensorSpec* found = nullptr;
  for (const v1::TensorSpec& tensor : schema.tensors()) {
    const bool nearer = found == nullptr || tensor.offset() > found->offset();
    if (tensor.offset() <= element && nearer) found = &tensor;
  }
  if (found == nullptr) return absl::StrCat("element ", element);
  return absl::StrCat(found->name(), "[", element - found->offset(), "]");
}

std::string Who(const ExchangeContext& context, uint64_t clock) {
  return absl::StrCat("worker ", context.rank, ", clock ", clock);
}

}  // namespace

absl::StatusOr<StepResult> RunStep(const ExchangeContext& context, uint64_t clock, uint64_t step,
                                   std::span<const float> weights, std::span<float> contribution,
                                   ClockReport& report) {
  auto result = context.steps.Run(step, weights, contribution);
  if (!result.ok()) return Annotate(result.status(), Who(context, clock));
  if (!std::isfinite(result->loss_sum)) {
    return absl::OutOfRangeError(absl::StrCat(Who(context, clock), ", step ", step,
                                              ": the loss is ", result->loss_sum, kAdvice));
  }
  report.loss_sum += result->loss_sum;
  report.examples += result->examples;
  report.data_seconds += result->data_seconds;
  report.compute_seconds += result->compute_seconds;
  return result;
}

absl::Status CheckFinite(const ExchangeContext& context, uint64_t clock, const char* what,
                         std::span<const float> values) {
  const size_t bad = FloatPayload::Of(values).FirstNonFinite();
  if (bad == values.size()) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(Who(context, clock), ": ", what, " of ",
                                            NameOf(context.schema, bad), " is ", values[bad],
                                            kAdvice));
}

absl::Status PushPull(const ExchangeContext& context, uint64_t clock,
                      std::span<const float> contribution, std::span<float> weights,
                      ClockReport& report) {
  const Time began = context.now();
  const auto result =
      context.client.Wait(context.client.PushPull(clock, report.examples, contribution, weights));
  RETURN_IF_ERROR(result.status());
  report.exchange_seconds = Seconds(context.now() - began);
  report.staleness = result->staleness;
  report.version = result->version;
  return absl::OkStatus();
}

}  // namespace leeway
