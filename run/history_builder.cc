#include "run/history_builder.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace leeway {
namespace {

using Step = RunHistory::Step;

uint64_t Share(uint64_t number, double share) {
  return static_cast<uint64_t>(std::llround(static_cast<double>(number) * share));
}

// Removes the part of `step` that is beyond the clock `end`. That clock is within the step.
void CutOff(Step& step, uint64_t end) {
  v1::StepMetrics& metrics = step.metrics;
  const double share = static_cast<double>(end - step.from) /
                       static_cast<double>(std::max<uint64_t>(1, metrics.clock() - step.from));
  metrics.set_clock(end);
  for (const Figure& figure : StepFigures()) {
    if (figure.merge != Merge::kSum) continue;
    if (figure.IsCount()) {
      figure.Set(Share(figure.Count(metrics), share), metrics);
    } else {
      figure.Set(figure.Real(metrics) * share, metrics);
    }
  }
}

}  // namespace

void WallTime::Add(const std::string& event, double time) {
  if (!std::isfinite(time)) return;
  if (event == "job_started") Start(time);
  if (!running_ || event == "server_registered" || event == "worker_registered") return;
  last_ = std::max(last_, time);
  if (event == "job_finished") Close();
}

double WallTime::Total() {
  Close();
  return total_;
}

void WallTime::Start(double time) {
  Close();
  running_ = true;
  start_ = last_ = time;
}

void WallTime::Close() {
  if (running_) total_ += last_ - start_;
  running_ = false;
}

void HistoryBuilder::Restart() {
  history_.state.clear();
  history_.message.clear();
  for (auto& [rank, reached] : reached_) reached.resumed = true;
}

void HistoryBuilder::Start(uint64_t clock) {
  if (!history_.first_clock) history_.first_clock = clock;
  if (clock < furthest_) ++history_.rewinds.times;
  StandAt(clock);
  Restart();
}

void HistoryBuilder::StandAt(uint64_t clock) {
  history_.rewinds.clocks += furthest_ - std::min(furthest_, clock);
  furthest_ = clock;
}

void HistoryBuilder::SetShape(const std::string& shape, uint64_t steps_per_clock) {
  const bool other = !shape_.empty() && shape != shape_;
  shape_ = shape;
  if (!other) return;
  history_.mixed = true;
  // Convert the progress, because later lines have the new number of steps in a clock.
  for (auto& [rank, reached] : reached_) reached.steps = reached.clock * steps_per_clock;
}

void HistoryBuilder::End(std::string state, std::string message) {
  history_.state = std::move(state);
  history_.message = std::move(message);
}

void HistoryBuilder::AddStep(Step step) {
  const uint64_t clock = step.metrics.clock();
  Reached& reached = reached_[step.rank];
  if (std::exchange(reached.resumed, false) && reached.clock > 0) Rewind(step, reached);
  step.from = std::min(reached.clock, clock);
  reached.clock = clock;
  furthest_ = std::max(furthest_, clock);
  reached.steps += step.metrics.steps();
  history_.steps.push_back(std::move(step));
  if (history_.steps.size() >= merge_at_) MergeNeighbours();
}

// Removes the rank's earlier steps that the line repeats. The line's first clock follows from its
// steps and the rank's mean number of steps in a clock.
void HistoryBuilder::Rewind(const Step& step, Reached& reached) {
  const uint64_t steps_per_clock =
      std::max<uint64_t>(1, (reached.steps + reached.clock / 2) / reached.clock);
  const uint64_t steps = step.metrics.steps();
  const uint64_t clocks = steps / steps_per_clock + (steps % steps_per_clock > 0 ? 1 : 0);
  const uint64_t start = step.metrics.clock() - std::min(step.metrics.clock(), clocks);
  reached = {.clock = std::min(reached.clock, start)};
  std::erase_if(history_.steps, [&](Step& old) {
    if (old.rank != step.rank) return false;
    const uint64_t clock = old.metrics.clock();
    if (clock > start && !(old.merged && old.from < start)) return true;
    if (clock > start) CutOff(old, start);
    reached.steps += old.metrics.steps();
    return false;
  });
}

// Merges pairs of consecutive steps of the same rank.
void HistoryBuilder::MergeNeighbours() {
  std::vector<Step> merged;
  // For each rank, the index of the first step of a pair.
  std::map<uint32_t, size_t> open;
  for (Step& step : history_.steps) {
    const auto [first, alone] = open.try_emplace(step.rank, merged.size());
    if (alone) {
      merged.push_back(std::move(step));
      continue;
    }
    MergeMetrics(step.metrics, merged[first->second].metrics);
    merged[first->second].merged = true;
    open.erase(first);
  }
  history_.steps = std::move(merged);
  // With very many ranks few steps are merged, so do not merge again before their number has
  // doubled.
  merge_at_ = std::max(merge_at_, 2 * history_.steps.size());
}

void HistoryBuilder::AddEvaluation(const v1::EvaluationMetrics& evaluation) {
  std::vector<v1::EvaluationMetrics>& all = history_.evaluations;
  while (!all.empty() && all.back().clock() >= evaluation.clock()) all.pop_back();
  all.push_back(evaluation);
  if (all.size() < evaluations_max_) return;
  // Keeps every second evaluation, and the newest one.
  size_t kept = 0;
  for (size_t i = all.size() % 2 == 0 ? 1 : 0; i < all.size(); i += 2) all[kept++] = all[i];
  all.resize(kept);
}

void HistoryBuilder::GoBack(uint64_t clock) {
  ++history_.rewinds.times;
  StandAt(clock);
  Restart();
  std::erase_if(history_.evaluations, [clock](const auto& each) { return each.clock() > clock; });
}

void HistoryBuilder::AddEvent(RunHistory::Event event) {
  std::vector<RunHistory::Event>& all = history_.events;
  all.push_back(std::move(event));
  if (all.size() < 2 * kEventsMax) return;
  all.erase(all.begin(), all.begin() + kEventsMax);
  history_.events_left_out += kEventsMax;
}

void HistoryBuilder::Skip(const std::string& line_and_why) {
  if (history_.file.lines_skipped++ == 0) history_.file.first_skipped = line_and_why;
}

RunHistory HistoryBuilder::Finish() {
  history_.seconds = wall_.Total();
  return std::move(history_);
}

}  // namespace leeway
