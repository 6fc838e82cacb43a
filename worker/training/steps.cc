#include "worker/training/steps.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/loss_scale.h"
#include "common/status.h"
#include "worker/training/device_encoder.h"

namespace leeway {
namespace {

// One part of a copy over the bus, and the event that is done when the part has arrived.
struct BusPart {
  BlockRange blocks;
  ElementRange elements;
  StreamEvent copied = {};
};

// Divides the blocks into parts of at least one whole block. Without a bus there is one part.
std::vector<BusPart> BusParts(const RunnerContext& context) {
  const BlockLayout& layout = context.carrier.layout();
  const uint32_t all = layout.blocks();
  const auto each =
      context.backend.shares_host_memory()
          ? all
          : static_cast<uint32_t>(std::max<uint64_t>(
                context.bus_part / std::max<uint64_t>(layout.block_elements(), 1), 1));
  std::vector<BusPart> parts;
  for (uint32_t first = 0; first < all; first += each) {
    const BlockRange blocks{first, std::min(each, all - first)};
    parts.push_back({blocks, ElementsOf(layout, blocks)});
  }
  return parts;
}

// Sends each part as soon as it has arrived on the host, and copies the answer to the device.
absl::Status ExchangeParts(const RunnerContext& context, uint64_t examples,
                           std::vector<BusPart>& parts, FlatVector& contribution,
                           FlatVector& weights) {
  Carrier& carrier = context.carrier;
  for (const BusPart& part : parts) {
    RETURN_IF_ERROR(context.backend.Await(part.copied));
    carrier.Contribute(part.blocks, examples, nullptr, contribution.host(), weights.host());
  }
  RETURN_IF_ERROR(carrier.Finish());
  for (BusPart& part : parts) {
    RETURN_IF_ERROR(carrier.Await({&part.elements, 1}, Time::max()).status());
    part.copied = weights.StartUp(part.elements);
  }
  return carrier.AwaitAll(Time::max()).status();
}

}  // namespace

std::string Who(const RunnerContext& context, uint64_t clock) {
  return absl::StrCat("worker ", context.rank, ", clock ", clock);
}

double Batches(const RunnerContext& context, uint64_t examples) {
  return static_cast<double>(examples) / std::max<double>(context.job.data().batch_size(), 1);
}

absl::Status SuggestBf16(const RunnerContext& context, const absl::Status& status) {
  if (status.ok() || !ScalesLoss(context.job)) return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(),
                                   "; or set workers.precision: bf16, which has the range of fp32, "
                                   "because the loss scale of fp16 has fallen to 1"));
}

absl::Status CheckLoss(const RunnerContext& context, double loss_sum, float loss_scale) {
  const bool refuses =
      context.job.exchange().on_bad_gradient() == v1::BAD_GRADIENT_REJECT && loss_scale == 1;
  if (std::isfinite(loss_sum) || !refuses) return absl::OkStatus();
  return SuggestBf16(
      context, absl::OutOfRangeError(absl::StrCat("the loss is ", loss_sum, kDivergedAdvice)));
}

absl::StatusOr<StepResult> RunStep(const RunnerContext& context, uint64_t clock, uint64_t step,
                                   const StepVectors& vectors, ClockReport& report,
                                   TrainObserver* observer) {
  TrainObserver none;
  auto result = context.steps.Run(step, vectors, observer ? *observer : none);
  const absl::Status status =
      result.ok() ? CheckLoss(context, result->loss_sum, vectors.loss_scale) : result.status();
  RETURN_IF_ERROR(Annotate(status, absl::StrCat(Who(context, clock), ", step ", step)));
  if (std::isfinite(result->loss_sum)) {
    report.loss_sum += result->loss_sum;
    report.examples += result->examples;
  } else {
    report.bad_loss = absl::StrCat("the loss of step ", step, " is ", result->loss_sum);
  }
  report.replaced += result->replaced;
  report.none_left = result->none_left;
  report.steps += result->none_left ? 0 : 1;
  report.data_seconds += result->data_seconds;
  report.compute_seconds += result->compute_seconds;
  report.forward_seconds += result->forward_seconds;
  report.backward_seconds += result->backward_seconds;
  return result;
}

StreamEvent StartContribution(const RunnerContext& context, uint64_t clock, uint64_t examples,
                              const BlockRange& blocks, const ElementRange& elements,
                              FlatVector& contribution) {
  // A contribution without examples has no effect, so it must not use up any of the residual.
  if (context.encoder == nullptr || examples == 0) return contribution.StartDown(elements);
  context.encoder->Start(clock, blocks, contribution.device().data(), contribution.host());
  return context.backend.Record(Stream::kDown);
}

absl::Status ExchangeAll(const RunnerContext& context, uint64_t clock, uint64_t examples,
                         const char* what, bool known_finite, FlatVector& contribution,
                         FlatVector& weights) {
  if (!known_finite) {
    RETURN_IF_ERROR(contribution.Down());
    RETURN_IF_ERROR(
        Annotate(CheckFinite(context.schema, what, 0, contribution.host()), Who(context, clock)));
  }
  std::vector<BusPart> parts = BusParts(context);
  for (BusPart& part : parts) {
    part.copied =
        StartContribution(context, clock, examples, part.blocks, part.elements, contribution);
  }
  absl::Status status = context.listener.OnBegin(clock);
  if (status.ok()) {
    context.carrier.Begin(clock);
    status = ExchangeParts(context, examples, parts, contribution, weights);
  }
  // Waits even after an error, so that no copy remains on the bus.
  for (const BusPart& part : parts) status.Update(context.backend.Await(part.copied));
  if (status.ok()) context.listener.OnComplete(context.carrier.End());
  return status;
}

}  // namespace leeway
