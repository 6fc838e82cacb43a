// Decides whether the job ends before its full length because its evaluations no longer improve
// (job.proto, EarlyStop; Prechelt 1998, "Early stopping - but when?", criterion UP, by a
// threshold). Owns the values of the evaluations. The core must report here each evaluation, and
// when the job goes back.
//
// The decision depends on the evaluations alone. So a restarted coordinator reads them in
// metrics.jsonl and decides the same.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Pure; not thread-safe.
class EarlyStop {
 public:
  // Makes an object that never ends the job.
  EarlyStop() = default;
  // If `config` has no `early_stop`, the object never ends the job and keeps nothing. `before` are
  // the run's evaluations so far, by ascending clock.
  EarlyStop(const v1::Evaluation& config, std::span<const v1::EvaluationMetrics> before);

  // Adds an evaluation. It replaces the evaluations at its clock and at later clocks, because those
  // are being repeated.
  void Add(const v1::EvaluationMetrics& metrics);
  // Forgets evaluations after the cut.
  void GoBack(uint64_t cut);

  // Returns why the job ends now, with the best evaluation; nullopt if the job goes on.
  std::optional<std::string> Why() const;
  // Returns the clock of the last evaluation; 0 before the first evaluation.
  uint64_t clock() const { return values_.empty() ? 0 : values_.back().clock; }

 private:
  struct Value {
    uint64_t clock = 0;
    double epoch = 0;
    double value = 0;
  };
  bool IsBetter(double value, double than) const;
  // Returns the index of the last value that was better than the best earlier value; nullopt if no
  // value is a number.
  std::optional<size_t> Best() const;

  std::optional<v1::EarlyStop> config_;
  std::vector<Value> values_;
};

}  // namespace leeway
