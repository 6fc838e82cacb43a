// Builds a run's history from the lines of its log, in their order.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "run/core/figures.h"
#include "run/history.h"

namespace leeway {

// Adds up the wall time of each start of the job, from job_started to the last line of that start.
// The line of a registration does not count. It may belong to the next start, long after the
// previous start was killed.
class WallTime {
 public:
  // `time` is in seconds since 1970. A time that is not finite is ignored.
  void Add(const std::string& event, double time);
  double Total();

 private:
  void Start(double time);
  void Close();

  bool running_ = false;
  double start_ = 0;
  double last_ = 0;
  double total_ = 0;
};

// After a resume or a return to a checkpoint, a rank repeats some clocks. Its old lines of those
// clocks are removed. Memory is bounded by `steps_max` and the number of ranks.
class HistoryBuilder {
 public:
  // The maximum numbers of entries. They are enough for a curve of any width.
  static constexpr size_t kStepsMax = 1 << 16;
  static constexpr size_t kEvaluationsMax = 1 << 14;
  static constexpr size_t kEventsMax = 1 << 12;

  explicit HistoryBuilder(size_t steps_max = kStepsMax, size_t evaluations_max = kEvaluationsMax)
      : merge_at_(steps_max), evaluations_max_(evaluations_max) {}

  void AddTime(const std::string& event, double time) { wall_.Add(event, time); }
  // Adds the figures of a line. The job may later repeat these clocks.
  void AddTold(const v1::StepMetrics& metrics) { MergeMetrics(metrics, history_.told); }
  void AddStep(RunHistory::Step step);
  void AddEvaluation(const v1::EvaluationMetrics& evaluation);
  void AddEvent(RunHistory::Event event);
  // Records that the job begins or is started again, so it has no outcome yet.
  void Restart();
  // Records that the job goes back to `clock`. Later evaluations no longer belong to the job.
  void GoBack(uint64_t clock);
  void Start(uint64_t clock);
  // Sets what a clock means in this start of the job.
  void SetShape(const std::string& shape, uint64_t steps_per_clock);
  // Records a job_finished event.
  void End(std::string state, std::string message);
  void Skip(const std::string& line_and_why);
  void SetFile(const std::string& name) { history_.file.name = name; }
  void BreakOff(const std::string& why) { history_.file.unreadable = why; }

  RunHistory Finish();

 private:
  struct Reached {
    uint64_t clock = 0;
    uint64_t steps = 0;
    bool resumed = false;
  };
  // Counts the clocks after `clock` as repeated, because the job is at `clock` again.
  void StandAt(uint64_t clock);
  void Rewind(const RunHistory::Step& step, Reached& reached);
  void MergeNeighbours();

  RunHistory history_;
  WallTime wall_;
  std::string shape_;
  std::map<uint32_t, Reached> reached_;
  // The highest clock of all ranks.
  uint64_t furthest_ = 0;
  // As soon as history_.steps has this number of entries, neighbours are merged in pairs.
  size_t merge_at_;
  const size_t evaluations_max_;
};

}  // namespace leeway
