#include "run/summary.h"

#include <cmath>
#include <exception>
#include <limits>
#include <numeric>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/printable.h"
#include "run/core/figures.h"

namespace leeway {
namespace {

using Json = nlohmann::ordered_json;

// Returns null for a value that is not finite, because JSON cannot express it.
Json Number(std::optional<double> value) {
  return value.has_value() && std::isfinite(*value) ? Json(*value) : Json();
}

// Thrown for JSON that SummaryJson cannot have written.
class NoSummary : public std::exception {
 public:
  explicit NoSummary(std::string why) : why_(std::move(why)) {}
  const char* what() const noexcept override { return why_.c_str(); }

 private:
  std::string why_;
};

constexpr uint64_t kCountMax = uint64_t{1} << 60;

uint64_t CountFrom(const Json& value, const char* key) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > kCountMax) {
    throw NoSummary(absl::StrCat("'", key, "' is not a count"));
  }
  return value.get<uint64_t>();
}

// Returns the value of a key. Throws if the key is missing, because a default value would look like
// a result.
const Json& At(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end()) {
    throw NoSummary(absl::StrCat("'", key, "' is missing"));
  }
  return *found;
}

uint64_t Count(const Json& json, const char* key) { return CountFrom(At(json, key), key); }

uint32_t SmallCount(const Json& json, const char* key) {
  const uint64_t count = Count(json, key);
  if (count > UINT32_MAX) throw NoSummary(absl::StrCat("'", key, "' is not a count"));
  return static_cast<uint32_t>(count);
}

template <typename Integer>
std::vector<Integer> Counts(const Json& json, const char* key) {
  if (!At(json, key).is_array()) throw NoSummary(absl::StrCat("'", key, "' is not a list"));
  std::vector<Integer> counts;
  for (const Json& value : At(json, key)) {
    counts.push_back(static_cast<Integer>(CountFrom(value, key)));
  }
  return counts;
}

// Returns nullopt for null, which means that the value is not known or that JSON cannot express it.
std::optional<double> Real(const Json& json, const char* key, double low = 0,
                           double high = std::numeric_limits<double>::max()) {
  const Json& value = At(json, key);
  if (value.is_null()) return std::nullopt;
  if (!value.is_number()) throw NoSummary(absl::StrCat("'", key, "' is not a number"));
  const double number = value.get<double>();
  if (number >= low && number <= high) return number;
  throw NoSummary(absl::StrCat("'", key, "' is ", number, ", which is out of range"));
}

std::string TextFrom(const Json& value, const char* key) {
  if (value.is_string()) return value.get<std::string>();
  throw NoSummary(absl::StrCat("'", key, "' is not a string"));
}

std::string Text(const Json& json, const char* key) { return TextFrom(At(json, key), key); }

std::string State(const Json& json) {
  std::string state = Text(json, "state");
  if (state == "finished" || state == "stopped" || state == "failed") return state;
  throw NoSummary("'state' is not finished, stopped or failed");
}

std::vector<std::string> Texts(const Json& json, const char* key) {
  if (!At(json, key).is_array()) throw NoSummary(absl::StrCat("'", key, "' is not a list"));
  std::vector<std::string> texts;
  for (const Json& value : At(json, key)) texts.push_back(TextFrom(value, key));
  return texts;
}

std::optional<bool> Flag(const Json& json, const char* key) {
  const Json& value = At(json, key);
  if (value.is_null()) return std::nullopt;
  if (!value.is_boolean()) throw NoSummary(absl::StrCat("'", key, "' must be true or false"));
  return value.get<bool>();
}

// The figures of worker_times, whose keys are those of metrics.jsonl.
constexpr const char* kTimes[] = {"data_seconds",     "compute_seconds",  "forward_seconds",
                                  "backward_seconds", "exchange_seconds", "wait_seconds"};

Json TimesJson(uint32_t rank, const v1::StepMetrics& times) {
  Json json = {{"rank", rank}};
  for (const char* const key : kTimes) json[key] = Number(StepFigure(key).Real(times));
  json["hidden_share"] = Number(HiddenShare(times));
  return json;
}

v1::StepMetrics TimesFrom(const Json& json) {
  v1::StepMetrics times;
  for (const char* const key : kTimes) {
    StepFigure(key).Set(Real(json, key).value_or(0), times);
  }
  return times;
}

// Returns the count of `key`. It is 0 if the key is absent, as in summaries of older versions.
uint64_t NewerCount(const Json& json, const char* key) {
  return json.contains(key) ? Count(json, key) : 0;
}

std::optional<TestResult> TestFrom(const Json& json) {
  const auto loss = Real(json, "test_loss", std::numeric_limits<double>::lowest());
  At(json, "test_accuracy");
  TestResult test;
  test.metrics.set_test_loss(loss.value_or(std::nan("")));
  bool any = loss.has_value();
  for (const TestFigure& figure : TestFigures()) {
    if (!json.contains(figure.name)) continue;
    const auto value = Real(json, figure.name, figure.least, figure.most);
    if (value) (test.metrics.*figure.set)(*value);
    any |= value.has_value();
  }
  if (json.contains("test_perplexity")) test.perplexity = Real(json, "test_perplexity");
  return any ? std::optional(test) : std::nullopt;
}

v1::StepMetrics TotalFrom(const Json& json) {
  v1::StepMetrics total;
  total.set_steps(Count(json, "steps"));
  total.set_examples(Count(json, "examples"));
  total.set_dropped_steps(Count(json, "dropped_steps"));
  total.set_overflowed_steps(NewerCount(json, "overflowed_steps"));
  total.set_replaced_pictures(NewerCount(json, "replaced_pictures"));
  total.set_staleness(Count(json, "max_staleness"));
  total.set_bytes_sent(Count(json, "bytes_sent"));
  total.set_bytes_received(Count(json, "bytes_received"));
  return total;
}

WorkersByRank WorkersFrom(const Json& json) {
  WorkersByRank workers;
  workers.steps = Counts<uint64_t>(json, "worker_steps");
  if (json.contains("devices")) workers.devices = Texts(json, "devices");
  workers.restarts = Counts<uint32_t>(json, "worker_restarts");
  for (const Json& times : At(json, "worker_times")) {
    workers.times[SmallCount(times, "rank")] = TimesFrom(times);
  }
  return workers;
}

RunSummary FromJson(const Json& json) {
  RunSummary summary;
  summary.state = State(json);
  summary.job = {Text(json, "name"), SmallCount(json, "servers"), SmallCount(json, "workers")};
  if (json.contains("message")) summary.message = Text(json, "message");
  summary.warnings = Texts(json, "warnings");
  summary.model.parameters = Count(json, "parameters");
  if (!At(json, "clock").is_null()) summary.model.clock = Count(json, "clock");
  if (!At(json, "weights_sha256").is_null()) {
    summary.model.weights_sha256 = Text(json, "weights_sha256");
  }
  summary.total = TotalFrom(json);
  summary.rewinds = {NewerCount(json, "went_back"), NewerCount(json, "clocks_again")};
  summary.seconds = Real(json, "seconds").value_or(0);
  summary.samples_per_second = Real(json, "samples_per_second").value_or(0);
  summary.test = TestFrom(json);
  summary.learning.learned = Flag(json, "learned");
  if (json.contains("why_not_learned")) summary.learning.why = Text(json, "why_not_learned");
  summary.by_rank = WorkersFrom(json);
  summary.server_restarts = Counts<uint32_t>(json, "server_restarts");
  return summary;
}

void SetRate(RunSummary& summary) {
  if (summary.seconds <= 0) return;
  summary.samples_per_second = static_cast<double>(summary.total.examples()) / summary.seconds;
}

}  // namespace

uint32_t RunSummary::restarts() const {
  const uint32_t workers =
      std::accumulate(by_rank.restarts.begin(), by_rank.restarts.end(), uint32_t{0});
  return std::accumulate(server_restarts.begin(), server_restarts.end(), workers);
}

void AddHistory(const RunHistory& history, RunSummary& summary) {
  summary.by_rank.times = SumByWorker(history);
  for (const auto& [rank, worker] : summary.by_rank.times) {
    MergeMetrics(worker, summary.total);
    std::vector<uint64_t>& steps = summary.by_rank.steps;
    if (steps.size() <= rank) steps.resize(rank + 1);
    steps[rank] += worker.steps();
  }
  if (const std::string gaps = history.Gaps(); !gaps.empty()) {
    summary.warnings.push_back(absl::StrCat(history.file.name, ": ", gaps));
  }
  // These figures count events, also in clocks that were repeated later.
  summary.total.set_dropped_steps(history.told.dropped_steps());
  summary.total.set_overflowed_steps(history.told.overflowed_steps());
  summary.total.set_replaced_pictures(history.told.replaced_pictures());
  summary.rewinds = history.rewinds;
  summary.seconds = history.seconds;
  SetRate(summary);
}

void SetSteps(uint64_t steps, const RunHistory& history, RunSummary& summary) {
  v1::StepMetrics& total = summary.total;
  if (total.steps() > 0 && total.steps() != steps) {
    const double share = static_cast<double>(steps) / static_cast<double>(total.steps());
    total.set_examples(
        static_cast<uint64_t>(std::llround(static_cast<double>(total.examples()) * share)));
  }
  total.set_steps(steps);
  // Set no rate if the history has gaps, because the rate of a part would be wrong for the whole
  // run.
  if (!history.HasGap()) SetRate(summary);
}

void SetSteps(std::vector<uint64_t> steps, const RunHistory& history, RunSummary& summary) {
  SetSteps(std::accumulate(steps.begin(), steps.end(), uint64_t{0}), history, summary);
  summary.by_rank.steps = std::move(steps);
}

void AddTest(const TestResult& test, Json& document) {
  document["test_loss"] = Number(test.metrics.test_loss());
  const auto add = [&](bool shares) {
    for (const TestFigure& figure : TestFigures()) {
      const auto value = figure.In(test.metrics);
      if (figure.share == shares && value) document[figure.name] = Number(value);
    }
  };
  add(true);
  if (test.perplexity) document["test_perplexity"] = Number(test.perplexity);
  add(false);
}

std::string SummaryJson(const RunSummary& summary) {
  const v1::StepMetrics& total = summary.total;
  Json json;
  json["name"] = summary.job.name;
  json["state"] = summary.state;
  if (!summary.message.empty()) json["message"] = summary.message;
  json["warnings"] = summary.warnings;
  json["servers"] = summary.job.servers;
  json["workers"] = summary.job.workers;
  json["parameters"] = summary.model.parameters;
  json["clock"] = summary.model.clock.has_value() ? Json(*summary.model.clock) : Json();
  json["steps"] = total.steps();
  json["worker_steps"] = summary.by_rank.steps;
  for (const char* key : {"examples", "dropped_steps", "overflowed_steps", "replaced_pictures"}) {
    json[key] = StepFigure(key).Count(total);
  }
  json["went_back"] = summary.rewinds.times;
  json["clocks_again"] = summary.rewinds.clocks;
  json["seconds"] = Number(summary.seconds);
  json["samples_per_second"] = Number(summary.samples_per_second);
  // Without a test the document has these keys, too.
  json["test_loss"] = Json();
  json["test_accuracy"] = Json();
  const Learning& learning = summary.learning;
  json["learned"] = learning.learned.has_value() ? Json(*learning.learned) : Json();
  if (!learning.why.empty()) json["why_not_learned"] = learning.why;
  if (summary.test) AddTest(*summary.test, json);
  json["max_staleness"] = total.staleness();
  json["bytes_sent"] = total.bytes_sent();
  json["bytes_received"] = total.bytes_received();
  const std::string& sha256 = summary.model.weights_sha256;
  json["weights_sha256"] = sha256.empty() ? Json() : Json(sha256);
  if (!summary.by_rank.devices.empty()) json["devices"] = summary.by_rank.devices;
  json["restarts"] = summary.restarts();
  json["worker_restarts"] = summary.by_rank.restarts;
  json["server_restarts"] = summary.server_restarts;
  json["worker_times"] = Json::array();
  for (const auto& [rank, times] : summary.by_rank.times) {
    json["worker_times"].push_back(TimesJson(rank, times));
  }
  // The last lines of a log may have bytes that are not UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<RunSummary> ParseSummary(const std::string& json, const std::string& file) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, " is damaged and not used: ", Printable(why)));
  };
  try {
    return FromJson(Json::parse(json));
  } catch (const Json::parse_error& error) {
    return refuse(absl::StrCat("not JSON from byte ", error.byte, " on"));
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
}

}  // namespace leeway
