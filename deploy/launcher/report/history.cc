#include "deploy/launcher/report/history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

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

RunHistory::Step StepOf(const Json& json) {
  RunHistory::Step step;
  step.rank = json.value("rank", 0u);
  step.clock = json.value("clock", uint64_t{0});
  step.epoch = json.value("epoch", 0.0);
  step.steps = json.value("steps", uint64_t{0});
  step.examples = json.value("examples", uint64_t{0});
  step.train_loss = Real(json, "train_loss");
  step.staleness = json.value("staleness", uint64_t{0});
  step.data_seconds = json.value("data_seconds", 0.0);
  step.compute_seconds = json.value("compute_seconds", 0.0);
  step.exchange_seconds = json.value("exchange_seconds", 0.0);
  return step;
}

RunHistory::Evaluation EvaluationOf(const Json& json) {
  RunHistory::Evaluation evaluation;
  evaluation.clock = json.value("clock", uint64_t{0});
  evaluation.epoch = json.value("epoch", 0.0);
  evaluation.test_loss = Real(json, "test_loss");
  if (const double accuracy = Real(json, "test_accuracy"); std::isfinite(accuracy)) {
    evaluation.test_accuracy = accuracy;
  }
  return evaluation;
}

// "rank 1, clock 200".
std::string Details(const Json& json) {
  static const std::set<std::string_view> kShownElsewhere = {"event", "time"};
  std::string details;
  for (const auto& [key, value] : json.items()) {
    if (kShownElsewhere.contains(key) || value.is_null() || value.is_structured()) continue;
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', ' ');
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (!text.empty()) absl::StrAppend(&details, details.empty() ? "" : ", ", name, " ", text);
  }
  return details;
}

// Adds up the wall time of each start of the job: from its first step's line to its last line.
class WallTime {
 public:
  void Add(const std::string& event, double time) {
    if (event == "job_started") start_ = time;
    if (!start_.has_value() || !std::isfinite(time)) return;
    last_ = std::max(last_, time - *start_);
    if (event == "job_finished" || event == "job_started") Close();
    if (event == "job_started") start_ = time;
  }
  double Total() {
    Close();
    return total_;
  }

 private:
  void Close() {
    total_ += last_;
    last_ = 0;
    start_.reset();
  }
  std::optional<double> start_;
  double last_ = 0;
  double total_ = 0;
};

void AddLine(const Json& json, RunHistory& history, WallTime& wall) {
  const std::string event = json.at("event").get<std::string>();
  const double time = Real(json, "time");
  wall.Add(event, time);
  if (event == "step") {
    history.steps.push_back(StepOf(json));
  } else if (event == "evaluation") {
    history.evaluations.push_back(EvaluationOf(json));
  } else {
    history.events.push_back({.time = time, .name = event, .details = Details(json)});
  }
  if (event == "job_finished") {
    history.state = json.value("state", "");
    history.message = json.value("message", "");
  }
}

}  // namespace

absl::StatusOr<RunHistory> ParseHistory(const std::string& text, const std::string& file) {
  RunHistory history;
  WallTime wall;
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    try {
      AddLine(Json::parse(lines[i].begin(), lines[i].end()), history, wall);
    } catch (const nlohmann::json::exception& error) {
      // Without its end of line it is the one that a crash cut short.
      if (i + 1 == lines.size()) break;
      return absl::InvalidArgumentError(
          absl::StrCat(file, ":", i + 1, ": no line of a run's metrics: ", error.what()));
    }
  }
  history.seconds = wall.Total();
  return history;
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
    worker.data_seconds += step.data_seconds;
    worker.compute_seconds += step.compute_seconds;
    worker.exchange_seconds += step.exchange_seconds;
  }
  return totals;
}

}  // namespace leeway
