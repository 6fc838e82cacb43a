#include "run/core/rank_progress.h"

#include <algorithm>
#include <optional>

#include "run/core/figures.h"

namespace leeway {
namespace {

constexpr Duration kRateWindow = std::chrono::seconds(8);

}  // namespace

bool RankProgress::Record(const v1::StepMetrics& metrics, Time now) {
  if (metrics.clock() <= last_.clock()) return false;
  const v1::StepMetrics& told =
      metrics.examples() > 0 && metrics.has_train_loss() ? metrics : last_;
  const auto loss = told.has_train_loss() ? std::optional(told.train_loss()) : std::nullopt;
  last_ = metrics;
  last_.clear_train_loss();
  if (loss) last_.set_train_loss(*loss);
  MergeMetrics(metrics, totals_);
  if (!recent_.empty() && recent_.back().at == now) {
    recent_.back().examples += metrics.examples();
  } else {
    recent_.push_back({now, metrics.examples()});
  }
  // Keep one arrival from before the window, because the window's first interval begins with it.
  while (recent_.size() > 1 && now - recent_[1].at > kRateWindow) recent_.pop_front();
  return true;
}

bool RankProgress::Record(const v1::EvaluationMetrics& metrics) {
  if (evaluated_ && metrics.clock() <= last_evaluation_) return false;
  evaluated_ = true;
  last_evaluation_ = metrics.clock();
  return true;
}

void RankProgress::GoBack(uint64_t clock) {
  last_.set_clock(std::min(last_.clock(), clock));
  last_evaluation_ = std::min(last_evaluation_, clock);
}

double RankProgress::Rate(Time now) const {
  uint64_t examples = 0;
  for (size_t i = 1; i < recent_.size(); ++i) examples += recent_[i].examples;
  if (examples == 0 || now - recent_.back().at > kRateWindow) return 0;
  return static_cast<double>(examples) / Seconds(recent_.back().at - recent_.front().at);
}

void RankProgress::Fill(Time now, v1::WorkerStatus& status) const {
  for (const Figure& figure : StepFigures()) {
    figure.Show(figure.merge == Merge::kSum ? totals_ : last_, status);
  }
  status.set_samples_per_second(Rate(now));
  status.set_waiting(waiting_);
  const double all = StepSeconds(last_);
  if (all > 0) status.set_wait_share(last_.wait_seconds() / all);
  if (const auto hidden = HiddenShare(last_)) status.set_hidden_share(*hidden);
}

}  // namespace leeway
