#include "run/history.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files/line_reader.h"
#include "common/files/temporary_folder.h"
#include "common/object_store/address.h"
#include "common/printable.h"
#include "common/status.h"
#include "common/storage/segments.h"
#include "run/core/figures.h"
#include "run/history_builder.h"

namespace leeway {
namespace {

using Json = nlohmann::ordered_json;

// The maximum length of a line. The coordinator writes shorter lines, so a longer line is damaged
// or does not belong to the log.
constexpr size_t kLineBytesMax = 1 << 20;
// The maximum lengths of a string from a line, and of the reason why a job ended, which may include
// the end of a log.
constexpr size_t kTextBytesMax = 1000;
constexpr size_t kMessageBytesMax = 16 << 10;
// The maximum values of numbers. Only a damaged log has larger values.
constexpr uint64_t kRanksMax = 1 << 16;
constexpr double kLoggedRealMax = 1e12;
constexpr uint64_t kLoggedCountMax = uint64_t{1} << 60;

// Thrown for a line that is not a metric.
class NoMetrics : public std::exception {
 public:
  explicit NoMetrics(std::string why) : why_(std::move(why)) {}
  const char* what() const noexcept override { return why_.c_str(); }

 private:
  std::string why_;
};

// Returns NaN if the key is missing or null, because JSON cannot express NaN.
double LoggedReal(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::numeric_limits<double>::quiet_NaN();
  return found->get<double>();
}

double RealIn(const Json& json, const char* key, double low, double high) {
  const double value = LoggedReal(json, key);
  if (value >= low && value <= high) return value;
  throw NoMetrics(absl::StrCat(key, " is not a number from ", low, " to ", high));
}

// Returns 0 if the key is missing. Throws if the value has the wrong type or is not a count (-1,
// 1e70).
uint64_t LoggedCount(const Json& json, const char* key, uint64_t max = kLoggedCountMax) {
  const auto found = json.find(key);
  const uint64_t count = found == json.end() ? 0 : found->get_ref<const Json::number_unsigned_t&>();
  if (count > max) throw NoMetrics(absl::StrCat(key, " is ", count));
  return count;
}

double EpochOf(const Json& json) {
  return json.contains("epoch") ? RealIn(json, "epoch", 0, kLoggedRealMax) : 0;
}

void TakeFigure(const Json& json, const Figure& figure, v1::StepMetrics& metrics) {
  const char* const key = figure.name;
  if (figure.IsCount()) {
    figure.Set(LoggedCount(json, key), metrics);
  } else if (figure.most == Figure::kAny) {
    if (const double real = LoggedReal(json, key); std::isfinite(real)) figure.Set(real, metrics);
  } else if (json.contains(key)) {
    figure.Set(RealIn(json, key, 0, std::max(figure.most, kLoggedRealMax)), metrics);
  }
}

RunHistory::Step StepOf(const Json& json) {
  RunHistory::Step step{.rank = static_cast<uint32_t>(LoggedCount(json, "rank", kRanksMax))};
  for (const Figure& figure : StepFigures()) TakeFigure(json, figure, step.metrics);
  // In a log without wait_seconds, workers waited during the whole exchange, because the log is
  // from an older version.
  if (!json.contains("wait_seconds")) {
    step.metrics.set_wait_seconds(step.metrics.exchange_seconds());
  }
  return step;
}

v1::EvaluationMetrics EvaluationOf(const Json& json) {
  v1::EvaluationMetrics evaluation;
  evaluation.set_clock(LoggedCount(json, "clock"));
  evaluation.set_epoch(EpochOf(json));
  evaluation.set_test_loss(LoggedReal(json, "test_loss"));
  for (const TestFigure& figure : TestFigures()) {
    if (!std::isfinite(LoggedReal(json, figure.name))) continue;
    (evaluation.*figure.set)(RealIn(json, figure.name, figure.least, figure.most));
  }
  return evaluation;
}

// Describes the other fields of an event, such as "rank 1, clock 200, no sign of life for 10 s".
std::string Details(const Json& json) {
  static const std::set<std::string_view> kShownElsewhere = {"event",           "time", "workers",
                                                             "steps_per_clock", "sync", "goes_on"};
  static const std::set<std::string_view> kSpeakForThemselves = {"message", "state"};
  std::string details;
  for (const auto& [key, value] : json.items()) {
    if (kShownElsewhere.contains(key) || value.is_null() || value.is_structured()) continue;
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (text.empty()) continue;
    if (!details.empty()) details += ", ";
    if (!kSpeakForThemselves.contains(key)) details += key + " ";
    details += text.substr(0, kTextBytesMax);
    if (details.size() > kTextBytesMax) break;
  }
  return details;
}

std::string TextOf(const Json& json, const char* key, size_t bytes_max) {
  return json.value(key, "").substr(0, bytes_max);
}

// Adds the line to the history. Throws and adds nothing if the line is not a metric.
void AddLine(const Json& json, HistoryBuilder& builder) {
  const std::string event = json.at("event").get<std::string>();
  const double time = LoggedReal(json, "time");
  const bool step = event == "step";
  if (step || event == "dropped") {
    RunHistory::Step told = StepOf(json);
    builder.AddTold(told.metrics);
    if (step) builder.AddStep(std::move(told));
  } else if (event == "evaluation") {
    builder.AddEvaluation(EvaluationOf(json));
  } else {
    RunHistory::Event told{.time = time, .name = event, .details = Details(json)};
    if (event == "job_started") {
      json.value("goes_on", false) ? builder.Restart() : builder.Start(LoggedCount(json, "clock"));
    }
    if (event == "went_back") builder.GoBack(LoggedCount(json, "clock"));
    if (event == "job_started" && json.contains("steps_per_clock")) {
      const uint64_t each = LoggedCount(json, "steps_per_clock");
      builder.SetShape(
          absl::StrCat(LoggedCount(json, "workers"), " ", each, " ", json.value("sync", false)),
          each);
    }
    if (event == "job_finished") {
      builder.End(TextOf(json, "state", kTextBytesMax), TextOf(json, "message", kMessageBytesMax));
    }
    builder.AddEvent(std::move(told));
  }
  builder.AddTime(event, time);
}

// Returns the reason why a line is not a metric, as one printable line.
std::string WhyOf(const std::exception& error) {
  if (const auto* parse = dynamic_cast<const Json::parse_error*>(&error)) {
    return absl::StrCat("not JSON from byte ", parse->byte, " on");
  }
  // The error messages of nlohmann begin with "[json.exception.type_error.302] ".
  const absl::string_view what = error.what();
  const size_t end = absl::StartsWith(what, "[") ? what.find("] ") : absl::string_view::npos;
  return Printable(end == absl::string_view::npos ? what : what.substr(end + 2));
}

void AddLine(const LineReader::Line& line, HistoryBuilder& builder) {
  std::string why;
  if (line.too_long) {
    why = absl::StrCat("more than ", kLineBytesMax, " bytes");
  } else if (!line.text.empty()) {
    try {
      return AddLine(Json::parse(line.text.begin(), line.text.end()), builder);
    } catch (const std::exception& error) {
      why = WhyOf(error);
    }
  }
  // Do not count a line without a line break, because a crash has cut it short.
  if (line.complete && !why.empty()) {
    builder.Skip(absl::StrCat("line ", line.number, ": ", why));
  }
}

}  // namespace

RunHistory ParseHistory(std::string_view text) {
  HistoryBuilder builder;
  for (uint64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    AddLine({.text = line,
             .number = number,
             .too_long = line.size() > kLineBytesMax,
             .complete = end != std::string_view::npos},
            builder);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return builder.Finish();
}

namespace {

absl::Status AddLines(const std::string& path, HistoryBuilder& builder) {
  absl::StatusOr<LineReader> reader = LineReader::Open(path, kLineBytesMax);
  absl::Status status = reader.status();
  while (status.ok()) {
    const auto line = reader->Next();
    status = line.status();
    if (!line.ok() || !line->has_value()) break;
    AddLine(**line, builder);
  }
  return status;
}

// Adds a log in an object store, which is in segments in a folder of the same name.
absl::Status AddSegments(const std::string& metrics_file, HistoryBuilder& builder) {
  ASSIGN_OR_RETURN(const auto folder, TemporaryFolder::Make("leeway-metrics"));
  const std::string path = folder->path() + "/metrics.jsonl";
  RETURN_IF_ERROR(JoinSegments(metrics_file.substr(0, metrics_file.rfind('.')), path));
  return AddLines(path, builder);
}

RunHistory ReadInto(HistoryBuilder builder, const std::string& metrics_file) {
  builder.SetFile(metrics_file);
  const absl::Status status = IsObjectLocation(metrics_file) ? AddSegments(metrics_file, builder)
                                                             : AddLines(metrics_file, builder);
  if (!status.ok() && !absl::IsNotFound(status)) builder.BreakOff(std::string(status.message()));
  return builder.Finish();
}

}  // namespace

RunHistory ReadHistory(const std::string& metrics_file) {
  return ReadInto(HistoryBuilder(), metrics_file);
}

RunHistory ReadWithAllEvaluations(const std::string& metrics_file) {
  return ReadInto(HistoryBuilder(HistoryBuilder::kStepsMax, std::numeric_limits<size_t>::max()),
                  metrics_file);
}

std::string RunHistory::Gaps() const {
  std::vector<std::string> gaps;
  if (first_clock > 0) {
    gaps.push_back(absl::StrCat("the log begins at clock ", *first_clock,
                                "; seconds, bytes and times do not cover earlier clocks"));
  }
  if (!file.unreadable.empty()) gaps.push_back(file.unreadable);
  if (file.lines_skipped > 0) {
    gaps.push_back(
        absl::StrCat(file.lines_skipped,
                     file.lines_skipped == 1 ? " unreadable line is" : " unreadable lines are",
                     " skipped; the first: ", file.first_skipped));
  }
  return absl::StrJoin(gaps, "; ");
}

std::map<uint32_t, v1::StepMetrics> SumByWorker(const RunHistory& history) {
  std::map<uint32_t, v1::StepMetrics> totals;
  for (const RunHistory::Step& step : history.steps) {
    v1::StepMetrics& worker = totals[step.rank];
    const uint64_t clock = std::max(worker.clock(), step.metrics.clock());
    MergeMetrics(step.metrics, worker);
    worker.set_clock(clock);
  }
  return totals;
}

}  // namespace leeway
