// Whether the job is to end before its length, because it no longer gets better (job.proto,
// EarlyStop; Prechelt 1998, "Early stopping - but when?", criterion UP, by a threshold). Owns the
// values of the evaluations; must be told of each, and when the job goes back.
//
// A function of the evaluations alone, so a coordinator that is started again decides the same by
// those of metrics.jsonl.
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
  // Never ends the job.
  EarlyStop() = default;
  // Without `early_stop` in it, it never ends the job and keeps nothing. `before`: the run's
  // evaluations so far, by rising clock.
  EarlyStop(const v1::Evaluation& config, std::span<const v1::EvaluationMetrics> before);

  // Takes the place of those of its clock and later ones, which were made again.
  void Add(const v1::EvaluationMetrics& metrics);
  // Evaluations of after the cut are forgotten.
  void GoBack(uint64_t cut);

  // Why the job ends now, with the best evaluation; nothing: it goes on.
  std::optional<std::string> Why() const;
  // Of the last evaluation; 0: there is none.
  uint64_t clock() const { return values_.empty() ? 0 : values_.back().clock; }

 private:
  struct Value {
    uint64_t clock = 0;
    double epoch = 0;
    double value = 0;
  };
  bool IsBetter(double value, double than) const;
  // The last one that was better than the best before it; nothing: none is a number.
  std::optional<size_t> Best() const;

  std::optional<v1::EarlyStop> config_;
  std::vector<Value> values_;
};

}  // namespace leeway
