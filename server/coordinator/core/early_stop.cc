#include "server/coordinator/core/early_stop.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/counted.h"

namespace leeway {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool IsFinite(double value) { return value > -kInfinity && value < kInfinity; }

}  // namespace

EarlyStop::EarlyStop(const v1::Evaluation& config, std::span<const v1::EvaluationMetrics> before) {
  if (!config.has_early_stop()) return;
  config_ = config.early_stop();
  for (const v1::EvaluationMetrics& metrics : before) Add(metrics);
}

void EarlyStop::Add(const v1::EvaluationMetrics& metrics) {
  if (!config_) return;
  while (!values_.empty() && values_.back().clock >= metrics.clock()) values_.pop_back();
  const bool by_accuracy = config_->metric() == v1::STOP_METRIC_TEST_ACCURACY;
  const double accuracy = metrics.has_test_accuracy() ? metrics.test_accuracy()
                                                      : std::numeric_limits<double>::quiet_NaN();
  values_.push_back(
      {metrics.clock(), metrics.epoch(), by_accuracy ? accuracy : metrics.test_loss()});
}

void EarlyStop::GoBack(uint64_t cut) {
  std::erase_if(values_, [cut](const Value& each) { return each.clock > cut; });
}

bool EarlyStop::IsBetter(double value, double than) const {
  const bool higher = config_->metric() == v1::STOP_METRIC_TEST_ACCURACY;
  const double by = higher ? value - than : than - value;
  // False for NaN.
  return by > config_->min_change();
}

std::optional<size_t> EarlyStop::Best() const {
  std::optional<size_t> best;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!IsFinite(values_[i].value)) continue;
    if (!best || IsBetter(values_[i].value, values_[*best].value)) best = i;
  }
  return best;
}

std::optional<std::string> EarlyStop::Why() const {
  if (!config_) return std::nullopt;
  const std::optional<size_t> best = Best();
  const size_t since = best ? values_.size() - 1 - *best : values_.size();
  if (since < config_->patience()) return std::nullopt;
  const char* metric =
      config_->metric() == v1::STOP_METRIC_TEST_ACCURACY ? "test_accuracy" : "test_loss";
  const std::string count =
      absl::StrCat("early stop: ", Counted(since, "evaluation"), " in a row ");
  if (!best) return absl::StrCat(count, "had no finite ", metric);
  const Value& value = values_[*best];
  const std::string by = config_->min_change() > 0
                             ? absl::StrCat(" by more than ", config_->min_change())
                             : std::string();
  return absl::StrCat(count, "did not improve ", metric, by, "; the best is ", value.value,
                      ", at clock ", value.clock, " (epoch ", value.epoch, ")");
}

}  // namespace leeway
