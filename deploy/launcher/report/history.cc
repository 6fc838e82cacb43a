#include "deploy/launcher/report/history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/files.h"
#include "common/status.h"

namespace leeway {
namespace {

using Json = nlohmann::ordered_json;

// A log of weeks; more is not read into memory.
constexpr uint64_t kLogBytesMax = uint64_t{4} << 30;

// What JSON cannot say (NaN) the log leaves out or writes as null.
double Real(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::numeric_limits<double>::quiet_NaN();
  return found->get<double>();
}

// Throws as for a wrong type what is no count (-1, 1e70).
uint64_t Count(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? 0 : found->get_ref<const Json::number_unsigned_t&>();
}

// Without wait_seconds the log is of a time when workers stood still for the whole exchange.
StepTimes TimesOf(const Json& json) {
  const double exchange = json.value("exchange_seconds", 0.0);
  return {.data = json.value("data_seconds", 0.0),
          .compute = json.value("compute_seconds", 0.0),
          .forward = json.value("forward_seconds", 0.0),
          .backward = json.value("backward_seconds", 0.0),
          .exchange = exchange,
          .wait = json.value("wait_seconds", exchange)};
}

RunHistory::Step StepOf(const Json& json) {
  RunHistory::Step step;
  step.rank = static_cast<uint32_t>(Count(json, "rank"));
  step.clock = Count(json, "clock");
  step.epoch = json.value("epoch", 0.0);
  step.steps = Count(json, "steps");
  step.examples = Count(json, "examples");
  step.train_loss = Real(json, "train_loss");
  step.staleness = Count(json, "staleness");
  step.times = TimesOf(json);
  step.bytes_sent = Count(json, "bytes_sent");
  step.bytes_received = Count(json, "bytes_received");
  return step;
}

RunHistory::Evaluation EvaluationOf(const Json& json) {
  RunHistory::Evaluation evaluation;
  evaluation.clock = Count(json, "clock");
  evaluation.epoch = json.value("epoch", 0.0);
  evaluation.test_loss = Real(json, "test_loss");
  if (const double accuracy = Real(json, "test_accuracy"); std::isfinite(accuracy)) {
    evaluation.test_accuracy = accuracy;
  }
  return evaluation;
}

// "rank 1, clock 200, no sign of life for 10 s".
std::string Details(const Json& json) {
  static const std::set<std::string_view> kShownElsewhere = {"event", "time"};
  static const std::set<std::string_view> kSpeakForThemselves = {"message", "state"};
  std::string details;
  for (const auto& [key, value] : json.items()) {
    if (kShownElsewhere.contains(key) || value.is_null() || value.is_structured()) continue;
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (text.empty()) continue;
    if (!details.empty()) details += ", ";
    if (!kSpeakForThemselves.contains(key)) details += key + " ";
    details += text;
  }
  return details;
}

// Adds up the wall time of each start of the job: from job_started to its last line. Who registers
// may do so for the next start, long after one that was killed.
class WallTime {
 public:
  void Add(const std::string& event, double time) {
    if (!std::isfinite(time)) return;
    if (event == "job_started") Start(time);
    if (!running_ || event == "server_registered" || event == "worker_registered") return;
    last_ = std::max(last_, time);
    if (event == "job_finished") Close();
  }
  double Total() {
    Close();
    return total_;
  }

 private:
  void Start(double time) {
    Close();
    running_ = true;
    start_ = last_ = time;
  }
  void Close() {
    if (running_) total_ += last_ - start_;
    running_ = false;
  }

  bool running_ = false;
  double start_ = 0;
  double last_ = 0;
  double total_ = 0;
};

// Takes the lines in order. After a resume, or where the job has gone back to a checkpoint, a rank
// does some clocks again: its old lines of these go.
class Builder {
 public:
  void Add(const Json& json) {
    const std::string event = json.at("event").get<std::string>();
    const double time = Real(json, "time");
    wall_.Add(event, time);
    if (event == "step" || event == "dropped") {
      history_.dropped_steps += Count(json, "dropped_steps");
    }
    if (event == "dropped") return;
    if (event == "step") return AddStep(StepOf(json));
    if (event == "evaluation") return AddEvaluation(EvaluationOf(json));
    if (event == "job_started" || event == "went_back") Restart();
    if (event == "job_finished") {
      history_.state = json.value("state", "");
      history_.message = json.value("message", "");
      ++history_.ends;
    }
    history_.events.push_back({.time = time, .name = event, .details = Details(json)});
  }

  RunHistory Finish() {
    history_.seconds = wall_.Total();
    return std::move(history_);
  }

 private:
  struct Reached {
    uint64_t clock = 0;
    uint64_t steps = 0;
    bool resumed = false;
  };

  void Restart() {
    history_.state.clear();
    history_.message.clear();
    for (auto& [rank, reached] : reached_) reached.resumed = true;
  }

  void AddStep(const RunHistory::Step& step) {
    Reached& reached = reached_[step.rank];
    if (std::exchange(reached.resumed, false) && reached.clock > 0) Rewind(step, reached);
    reached.clock = step.clock;
    reached.steps += step.steps;
    history_.steps.push_back(step);
  }

  // Where the line's first clock is follows from how many steps the rank made in a clock so far.
  void Rewind(const RunHistory::Step& step, Reached& reached) {
    const uint64_t steps_per_clock = std::max<uint64_t>(1, reached.steps / reached.clock);
    const uint64_t clocks = (step.steps + steps_per_clock - 1) / steps_per_clock;
    const uint64_t start = step.clock - std::min(step.clock, clocks);
    std::erase_if(history_.steps, [&](const RunHistory::Step& old) {
      const bool again = old.rank == step.rank && old.clock > start;
      if (again) reached.steps -= old.steps;
      return again;
    });
  }

  void AddEvaluation(const RunHistory::Evaluation& evaluation) {
    while (!history_.evaluations.empty() && history_.evaluations.back().clock >= evaluation.clock) {
      history_.evaluations.pop_back();
    }
    history_.evaluations.push_back(evaluation);
  }

  RunHistory history_;
  WallTime wall_;
  std::map<uint32_t, Reached> reached_;
};

}  // namespace

std::optional<double> StepTimes::hidden() const {
  if (exchange <= 0) return std::nullopt;
  return std::clamp(1 - wait / exchange, 0.0, 1.0);
}

StepTimes& StepTimes::operator+=(const StepTimes& more) {
  data += more.data;
  compute += more.compute;
  forward += more.forward;
  backward += more.backward;
  exchange += more.exchange;
  wait += more.wait;
  return *this;
}

absl::StatusOr<RunHistory> ParseHistory(const std::string& text, const std::string& file) {
  Builder builder;
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    try {
      builder.Add(Json::parse(lines[i].begin(), lines[i].end()));
    } catch (const nlohmann::json::exception& error) {
      // Without its end of line it is the one that a crash cut short.
      if (i + 1 == lines.size()) break;
      return absl::InvalidArgumentError(
          absl::StrCat(file, ":", i + 1, ": no line of a run's metrics: ", error.what()));
    }
  }
  return builder.Finish();
}

absl::StatusOr<RunHistory> ReadHistory(const std::string& metrics_file) {
  absl::StatusOr<std::string> text = ReadFile(metrics_file, kLogBytesMax);
  if (absl::IsNotFound(text.status())) return RunHistory{};
  RETURN_IF_ERROR(text.status());
  return ParseHistory(*text, metrics_file);
}

std::map<uint32_t, WorkerTotals> SumByWorker(const RunHistory& history) {
  std::map<uint32_t, WorkerTotals> totals;
  for (const RunHistory::Step& step : history.steps) {
    WorkerTotals& worker = totals[step.rank];
    worker.steps += step.steps;
    worker.examples += step.examples;
    worker.clock = std::max(worker.clock, step.clock);
    worker.staleness = std::max(worker.staleness, step.staleness);
    worker.times += step.times;
  }
  return totals;
}

}  // namespace leeway
