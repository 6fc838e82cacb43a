#include "launcher/supervision/progress.h"

#include <algorithm>

namespace leeway {
namespace {

constexpr Duration kWindow = std::chrono::seconds(30);

}  // namespace

double MeanClock(const v1::JobStatus& status) {
  if (status.workers().empty()) return 0;
  double sum = 0;
  for (const v1::WorkerStatus& worker : status.workers())
    sum += static_cast<double>(worker.clock());
  return sum / status.workers_size();
}

double DoneShare(const v1::JobStatus& status) {
  if (status.state() == v1::JOB_FINISHED) return 1;
  if (status.clocks() == 0) return 0;
  return std::clamp(MeanClock(status) / static_cast<double>(status.clocks()), 0.0, 1.0);
}

double SamplesPerSecond(const v1::JobStatus& status) {
  double sum = 0;
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (worker.state() == "running") sum += worker.samples_per_second();
  }
  return sum;
}

std::optional<double> MeanLoss(const v1::JobStatus& status) {
  double sum = 0;
  int trained = 0;
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (worker.examples() == 0 || !worker.has_train_loss()) continue;
    sum += worker.train_loss();
    ++trained;
  }
  if (trained == 0) return std::nullopt;
  return sum / trained;
}

void EtaEstimator::Add(Time now, double clock) {
  // A restarted worker may have gone back to an earlier clock.
  if (!samples_.empty() && clock < samples_.back().clock) samples_.clear();
  samples_.push_back({now, clock});
  // The oldest sample stays just outside the window, so that the samples always span the whole
  // window.
  while (samples_.size() > 2 && now - samples_[1].time >= kWindow) samples_.pop_front();
}

std::optional<double> EtaEstimator::Seconds(double clocks) const {
  if (samples_.size() < 2) return std::nullopt;
  const double moved = samples_.back().clock - samples_.front().clock;
  const double seconds = leeway::Seconds(samples_.back().time - samples_.front().time);
  if (moved <= 0 || seconds <= 0) return std::nullopt;
  return std::max(0.0, clocks - samples_.back().clock) * seconds / moved;
}

}  // namespace leeway
