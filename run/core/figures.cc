#include "run/core/figures.h"

#include <algorithm>
#include <iterator>

#include "common/loss_scale.h"

namespace leeway {
namespace {

using google::protobuf::FieldDescriptor;
using Step = v1::StepMetrics;
using enum Merge;

// The limit for steps, contributions, staleness and epochs.
constexpr double kCountMax = uint64_t{1} << 40;
// The limits for examples and bytes are low enough that sums over all heartbeats of a job do not
// overflow.
constexpr double kExamplesMax = uint64_t{1} << 48;
constexpr double kBytesMax = uint64_t{1} << 56;
// The limit for durations: about 31 years.
constexpr double kSecondsMax = 1e9;
constexpr double kLossScaleMax = uint64_t{1} << kLossScaleMost;

// A clock has a limit of its own, the job's (metrics_check.h). A loss may have any value, because
// training can diverge and the metrics must show that.
constexpr Figure kStepFigures[] = {
    {Step::kClockFieldNumber, kNewest},
    {Step::kEpochFieldNumber, kNewest, kCountMax},
    {Step::kStepsFieldNumber, kSum, kCountMax},
    {Step::kExamplesFieldNumber, kSum, kExamplesMax},
    {Step::kTrainLossFieldNumber, kMean},
    {Step::kStalenessFieldNumber, kLargest, kCountMax},
    {Step::kLearningRateFieldNumber, kNewest, 1e30},
    {Step::kDataSecondsFieldNumber, kSum, kSecondsMax},
    {Step::kComputeSecondsFieldNumber, kSum, kSecondsMax},
    {Step::kForwardSecondsFieldNumber, kSum, kSecondsMax},
    {Step::kBackwardSecondsFieldNumber, kSum, kSecondsMax},
    {Step::kExchangeSecondsFieldNumber, kSum, kSecondsMax},
    {Step::kWaitSecondsFieldNumber, kSum, kSecondsMax},
    {Step::kBytesSentFieldNumber, kSum, kBytesMax},
    {Step::kBytesReceivedFieldNumber, kSum, kBytesMax},
    {Step::kDroppedStepsFieldNumber, kSum, kCountMax, Step::kDroppedStepsFieldNumber},
    {Step::kDroppedExamplesFieldNumber, kSum, kExamplesMax, Step::kDroppedStepsFieldNumber},
    {Step::kSkippedContributionsFieldNumber, kSum, kCountMax,
     Step::kSkippedContributionsFieldNumber},
    {Step::kClippedContributionsFieldNumber, kSum, kCountMax,
     Step::kClippedContributionsFieldNumber},
    {Step::kReplacedPicturesFieldNumber, kSum, kExamplesMax, Step::kReplacedPicturesFieldNumber},
    // Only a job that trains in fp16 has a loss scale.
    {Step::kOverflowedStepsFieldNumber, kSum, kCountMax, Step::kLossScaleFieldNumber},
    {Step::kLossScaleFieldNumber, kNewestKnown, kLossScaleMax, Step::kLossScaleFieldNumber},
};

const FieldDescriptor& FieldOf(int number) {
  return *Step::descriptor()->FindFieldByNumber(number);
}

template <typename Number>
Number Merged(Merge merge, Number record, Number more) {
  switch (merge) {
    case kSum:
      return record + more;
    case kLargest:
      return std::max(record, more);
    case kNewestKnown:
      return more > 0 ? more : record;
    default:
      return more;
  }
}

// Returns the number of examples of which the metrics tell the figure.
uint64_t Weight(const Figure& figure, const v1::StepMetrics& metrics) {
  return figure.IsTold(metrics) ? metrics.examples() : 0;
}

void MergeMean(const Figure& figure, const v1::StepMetrics& more, v1::StepMetrics& record) {
  const auto weight = static_cast<double>(Weight(figure, record));
  const auto weight_more = static_cast<double>(Weight(figure, more));
  if (weight_more == 0) return;
  figure.Set(
      (figure.Real(record) * weight + figure.Real(more) * weight_more) / (weight + weight_more),
      record);
}

}  // namespace

const std::string& Figure::name() const { return FieldOf(field).name(); }

bool Figure::IsCount() const {
  return FieldOf(field).cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
}

bool Figure::IsTold(const v1::StepMetrics& metrics) const {
  const FieldDescriptor& told = FieldOf(field);
  return !told.has_presence() || metrics.GetReflection()->HasField(metrics, &told);
}

bool Figure::IsLogged(const v1::StepMetrics& metrics) const {
  if (logged_with == 0) return true;
  const Figure& other = StepFigure(logged_with);
  return other.IsCount() ? other.Count(metrics) > 0 : other.Real(metrics) > 0;
}

uint64_t Figure::Count(const v1::StepMetrics& metrics) const {
  return metrics.GetReflection()->GetUInt64(metrics, &FieldOf(field));
}

double Figure::Real(const v1::StepMetrics& metrics) const {
  return metrics.GetReflection()->GetDouble(metrics, &FieldOf(field));
}

void Figure::Set(uint64_t count, v1::StepMetrics& metrics) const {
  metrics.GetReflection()->SetUInt64(&metrics, &FieldOf(field), count);
}

void Figure::Set(double real, v1::StepMetrics& metrics) const {
  metrics.GetReflection()->SetDouble(&metrics, &FieldOf(field), real);
}

void Figure::Show(const v1::StepMetrics& metrics, v1::WorkerStatus& status) const {
  const FieldDescriptor* const shown = v1::WorkerStatus::descriptor()->FindFieldByName(name());
  if (shown == nullptr || !IsTold(metrics)) return;
  if (IsCount()) {
    status.GetReflection()->SetUInt64(&status, shown, Count(metrics));
  } else {
    status.GetReflection()->SetDouble(&status, shown, Real(metrics));
  }
}

std::span<const Figure> StepFigures() { return kStepFigures; }

const Figure& StepFigure(int field) {
  return *std::find_if(std::begin(kStepFigures), std::end(kStepFigures),
                       [field](const Figure& figure) { return figure.field == field; });
}

void MergeMetrics(const v1::StepMetrics& more, v1::StepMetrics& record) {
  // Means come first, because they need the number of examples before the merge.
  for (const Figure& figure : kStepFigures) {
    if (figure.merge == kMean) MergeMean(figure, more, record);
  }
  for (const Figure& figure : kStepFigures) {
    if (figure.merge == kMean) continue;
    if (figure.IsCount()) {
      figure.Set(Merged(figure.merge, figure.Count(record), figure.Count(more)), record);
    } else {
      figure.Set(Merged(figure.merge, figure.Real(record), figure.Real(more)), record);
    }
  }
}

double StepSeconds(const v1::StepMetrics& metrics) {
  return metrics.data_seconds() + metrics.compute_seconds() + metrics.wait_seconds();
}

std::optional<double> HiddenShare(const v1::StepMetrics& metrics) {
  if (metrics.exchange_seconds() <= 0) return std::nullopt;
  return std::clamp(1 - metrics.wait_seconds() / metrics.exchange_seconds(), 0.0, 1.0);
}

}  // namespace leeway
