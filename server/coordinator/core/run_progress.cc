#include "server/coordinator/core/run_progress.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/printable.h"
#include "run/core/figures.h"

namespace leeway {

std::vector<v1::EvaluationMetrics> RunProgress::Record(const v1::HeartbeatRequest& request,
                                                       Time now, Commands& commands) {
  RankProgress& progress = ranks_[request.rank()];
  progress.SetWaiting(Printable(request.waiting()));
  std::optional<v1::StepMetrics> fresh;
  for (const v1::StepMetrics& metrics : request.steps()) {
    if (!progress.Record(metrics, now)) continue;
    if (fresh) {
      MergeMetrics(metrics, *fresh);
    } else {
      fresh = metrics;
    }
  }
  if (fresh) commands.Push(StepRecord{request.rank(), *std::move(fresh)});
  std::vector<v1::EvaluationMetrics> evaluated;
  for (const v1::EvaluationMetrics& metrics : request.evaluations()) {
    if (!progress.Record(metrics)) continue;
    evaluated.push_back(metrics);
    if (evaluations_.size() == kEvaluationsKept) evaluations_.erase(evaluations_.begin());
    evaluations_.push_back(metrics);
    commands.Push(EvaluationRecord{request.rank(), metrics});
  }
  return evaluated;
}

void RunProgress::GoBack(uint64_t clock, uint64_t cut) {
  // Ranks go back to `clock` and not to `cut`. Outside of sync mode a rank's own clock may have
  // been behind the cut's clock, which is a mean.
  for (RankProgress& progress : ranks_) progress.GoBack(clock);
  std::erase_if(evaluations_, [cut](const auto& each) { return each.clock() > cut; });
}

void RunProgress::Fill(Time now, v1::JobStatus& status) const {
  uint64_t staleness = 0;
  for (const RankProgress& progress : ranks_) {
    progress.Fill(now, *status.add_workers());
    staleness = std::max(staleness, progress.max_staleness());
  }
  status.set_max_staleness(staleness);
  for (const v1::EvaluationMetrics& metrics : evaluations_) *status.add_evaluations() = metrics;
}

}  // namespace leeway
