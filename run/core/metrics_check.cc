#include "run/core/metrics_check.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/loss_scale.h"
#include "common/status.h"

namespace leeway {
namespace {

// The limit for steps, contributions, staleness and epochs.
constexpr uint64_t kCountMax = uint64_t{1} << 40;
// The limits for examples and bytes are low enough that sums over all heartbeats of a job do not
// overflow.
constexpr uint64_t kExamplesMax = uint64_t{1} << 48;
constexpr uint64_t kBytesMax = uint64_t{1} << 56;
// The limit for durations: about 31 years.
constexpr double kSecondsMax = 1e9;
constexpr double kLearningRateMax = 1e30;

// Keeps the first wrong number that it finds, with the name of its record.
class Numbers {
 public:
  explicit Numbers(std::string record) : record_(std::move(record)) {}

  void Count(const char* field, uint64_t value, uint64_t most) {
    if (value > most) Refuse(field, absl::StrCat(value), absl::StrCat("at most ", most));
  }
  // False for NaN, too.
  void Share(const char* field, double value, double most) {
    const bool good = value >= 0 && value <= most;
    if (!good) Refuse(field, absl::StrCat(value), absl::StrCat("0 to ", most));
  }
  const absl::Status& status() const { return status_; }

 private:
  void Refuse(const char* field, const std::string& value, const std::string& wanted) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(
        absl::StrCat(record_, ".", field, ": is ", value, ", must be ", wanted));
  }

  const std::string record_;
  absl::Status status_;
};

absl::Status Check(const std::string& record, const v1::StepMetrics& metrics, uint64_t clock) {
  Numbers numbers(record);
  numbers.Count("clock", metrics.clock(), clock);
  numbers.Share("epoch", metrics.epoch(), static_cast<double>(kCountMax));
  numbers.Count("steps", metrics.steps(), kCountMax);
  numbers.Count("examples", metrics.examples(), kExamplesMax);
  numbers.Count("staleness", metrics.staleness(), kCountMax);
  numbers.Share("learning_rate", metrics.learning_rate(), kLearningRateMax);
  numbers.Share("data_seconds", metrics.data_seconds(), kSecondsMax);
  numbers.Share("compute_seconds", metrics.compute_seconds(), kSecondsMax);
  numbers.Share("exchange_seconds", metrics.exchange_seconds(), kSecondsMax);
  numbers.Share("forward_seconds", metrics.forward_seconds(), kSecondsMax);
  numbers.Share("backward_seconds", metrics.backward_seconds(), kSecondsMax);
  numbers.Share("wait_seconds", metrics.wait_seconds(), kSecondsMax);
  numbers.Count("bytes_sent", metrics.bytes_sent(), kBytesMax);
  numbers.Count("bytes_received", metrics.bytes_received(), kBytesMax);
  numbers.Count("dropped_steps", metrics.dropped_steps(), kCountMax);
  numbers.Count("dropped_examples", metrics.dropped_examples(), kExamplesMax);
  numbers.Count("skipped_contributions", metrics.skipped_contributions(), kCountMax);
  numbers.Count("clipped_contributions", metrics.clipped_contributions(), kCountMax);
  numbers.Count("replaced_pictures", metrics.replaced_pictures(), kExamplesMax);
  numbers.Count("overflowed_steps", metrics.overflowed_steps(), kCountMax);
  numbers.Share("loss_scale", metrics.loss_scale(), LossScaleOf(kLossScaleMost));
  return numbers.status();
}

absl::Status Check(const std::string& record, const v1::EvaluationMetrics& metrics,
                   uint64_t clock) {
  Numbers numbers(record);
  numbers.Count("clock", metrics.clock(), clock);
  numbers.Share("epoch", metrics.epoch(), static_cast<double>(kCountMax));
  if (metrics.has_test_accuracy()) numbers.Share("test_accuracy", metrics.test_accuracy(), 1);
  if (metrics.has_test_top5_accuracy()) {
    numbers.Share("test_top5_accuracy", metrics.test_top5_accuracy(), 1);
  }
  numbers.Count("examples", metrics.examples(), kExamplesMax);
  return numbers.status();
}

}  // namespace

absl::Status CheckMetrics(const v1::HeartbeatRequest& request, uint64_t largest_clock) {
  const std::string who = absl::StrCat("the heartbeat of worker ", request.rank(), ": ");
  for (int i = 0; i < request.steps_size(); ++i) {
    RETURN_IF_ERROR(Check(absl::StrCat(who, "steps[", i, "]"), request.steps(i), largest_clock));
  }
  for (int i = 0; i < request.evaluations_size(); ++i) {
    RETURN_IF_ERROR(
        Check(absl::StrCat(who, "evaluations[", i, "]"), request.evaluations(i), largest_clock));
  }
  return absl::OkStatus();
}

}  // namespace leeway
