#include "run/core/figures.h"

#include <algorithm>

#include "common/loss_scale.h"

namespace leeway {
namespace {

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

template <typename Number>
constexpr Figure::Field<Number> FieldOf(Number (Step::*get)() const, void (Step::*set)(Number)) {
  return {get, set};
}
#define FIELD(name) #name, FieldOf(&Step::name, &Step::set_##name)

// The job sets the limit of a clock (metrics_check.h). A loss may have any value, because training
// can diverge and the metrics must show that.
constexpr Figure kStepFigures[] = {
    {FIELD(clock), kNewest},
    {FIELD(epoch), kNewest, kCountMax},
    {FIELD(steps), kSum, kCountMax},
    {FIELD(examples), kSum, kExamplesMax},
    {FIELD(train_loss), kMean, Figure::kAny, "", &Step::has_train_loss},
    {FIELD(staleness), kLargest, kCountMax},
    {FIELD(learning_rate), kNewest, 1e30},
    {FIELD(data_seconds), kSum, kSecondsMax},
    {FIELD(compute_seconds), kSum, kSecondsMax},
    {FIELD(forward_seconds), kSum, kSecondsMax},
    {FIELD(backward_seconds), kSum, kSecondsMax},
    {FIELD(exchange_seconds), kSum, kSecondsMax},
    {FIELD(wait_seconds), kSum, kSecondsMax},
    {FIELD(bytes_sent), kSum, kBytesMax},
    {FIELD(bytes_received), kSum, kBytesMax},
    {FIELD(dropped_steps), kSum, kCountMax, "dropped_steps"},
    {FIELD(dropped_examples), kSum, kExamplesMax, "dropped_steps"},
    {FIELD(skipped_contributions), kSum, kCountMax, "skipped_contributions"},
    {FIELD(clipped_contributions), kSum, kCountMax, "clipped_contributions"},
    {FIELD(replaced_pictures), kSum, kExamplesMax, "replaced_pictures"},
    // Only a job that trains in fp16 has a loss scale.
    {FIELD(overflowed_steps), kSum, kCountMax, "loss_scale"},
    {FIELD(loss_scale), kNewestKnown, kLossScaleMax, "loss_scale"},
    // Only a gossip job has a mean of different weights.
    {FIELD(mean_distance), kNewestKnown, 1e30, "mean_distance", &Step::has_mean_distance},
};

using Test = v1::EvaluationMetrics;
#define TEST_FIELD(name) &Test::has_##name, &Test::name, &Test::set_##name

constexpr TestFigure kTestFigures[] = {
    {"test_accuracy", "test accuracy", "test accuracy", true, 0, 1, TEST_FIELD(test_accuracy)},
    {"test_top5_accuracy", "top-5 accuracy", "top five", true, 0, 1,
     TEST_FIELD(test_top5_accuracy)},
    {"test_mae", "mean absolute error", "MAE", false, 0, Figure::kAny, TEST_FIELD(test_mae)},
    {"test_r2", "R²", "R²", false, -Figure::kAny, Figure::kAny, TEST_FIELD(test_r2)},
};

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

// Returns the number of examples of a figure, or 0 if the metrics do not have the figure.
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

bool Figure::IsTold(const v1::StepMetrics& metrics) const {
  return told == nullptr || (metrics.*told)();
}

bool Figure::IsLogged(const v1::StepMetrics& metrics) const {
  if (logged_with.empty()) return true;
  const Figure& other = StepFigure(logged_with);
  return other.IsCount() ? other.Count(metrics) > 0 : other.Real(metrics) > 0;
}

uint64_t Figure::Count(const v1::StepMetrics& metrics) const {
  return (metrics.*std::get<Field<uint64_t>>(field).get)();
}

double Figure::Real(const v1::StepMetrics& metrics) const {
  return (metrics.*std::get<Field<double>>(field).get)();
}

void Figure::Set(uint64_t count, v1::StepMetrics& metrics) const {
  (metrics.*std::get<Field<uint64_t>>(field).set)(count);
}

void Figure::Set(double real, v1::StepMetrics& metrics) const {
  (metrics.*std::get<Field<double>>(field).set)(real);
}

void Figure::Show(const v1::StepMetrics& metrics, v1::WorkerStatus& status) const {
  const auto* const shown = v1::WorkerStatus::descriptor()->FindFieldByName(name);
  if (shown == nullptr || !IsTold(metrics)) return;
  if (IsCount()) {
    status.GetReflection()->SetUInt64(&status, shown, Count(metrics));
  } else {
    status.GetReflection()->SetDouble(&status, shown, Real(metrics));
  }
}

std::optional<double> TestFigure::In(const v1::EvaluationMetrics& metrics) const {
  return (metrics.*has)() ? std::optional((metrics.*get)()) : std::nullopt;
}

std::span<const TestFigure> TestFigures() { return kTestFigures; }

std::span<const Figure> StepFigures() { return kStepFigures; }

const Figure& StepFigure(absl::string_view name) {
  return *std::ranges::find(kStepFigures, name, &Figure::name);
}

void MergeMetrics(const v1::StepMetrics& more, v1::StepMetrics& record) {
  // Merge the means first, because they need the number of examples before the merge.
  for (const Figure& figure : kStepFigures) {
    if (figure.merge == kMean) MergeMean(figure, more, record);
  }
  for (const Figure& figure : kStepFigures) {
    if (figure.merge == kMean) continue;
    std::visit(
        [&](const auto& field) {
          const auto merged = Merged(figure.merge, (record.*field.get)(), (more.*field.get)());
          (record.*field.set)(merged);
        },
        figure.field);
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
