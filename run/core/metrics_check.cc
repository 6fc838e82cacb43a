#include "run/core/metrics_check.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "run/core/figures.h"

namespace leeway {
namespace {

// Keeps the first wrong number that it finds, with the name of its record.
class Numbers {
 public:
  explicit Numbers(std::string record) : record_(std::move(record)) {}

  void Count(const char* field, uint64_t value, uint64_t most) {
    if (value > most) Refuse(field, absl::StrCat(value), absl::StrCat("at most ", most));
  }
  // The comparison is false for NaN, so NaN is refused, too.
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

// Returns the limit of a figure of a step.
uint64_t Most(absl::string_view name) { return static_cast<uint64_t>(StepFigure(name).most); }

absl::Status Check(const std::string& record, const v1::StepMetrics& metrics, uint64_t clock) {
  Numbers numbers(record);
  numbers.Count("clock", metrics.clock(), clock);
  for (const Figure& figure : StepFigures()) {
    if (figure.most == Figure::kAny) continue;
    if (figure.IsCount()) {
      numbers.Count(figure.name, figure.Count(metrics), Most(figure.name));
    } else {
      numbers.Share(figure.name, figure.Real(metrics), figure.most);
    }
  }
  return numbers.status();
}

absl::Status Check(const std::string& record, const v1::EvaluationMetrics& metrics,
                   uint64_t clock) {
  Numbers numbers(record);
  numbers.Count("clock", metrics.clock(), clock);
  numbers.Share("epoch", metrics.epoch(), StepFigure("epoch").most);
  for (const TestFigure& figure : TestFigures()) {
    const std::optional<double> value = figure.In(metrics);
    if (figure.share && value) numbers.Share(figure.name, *value, 1);
  }
  numbers.Count("examples", metrics.examples(), Most("examples"));
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
