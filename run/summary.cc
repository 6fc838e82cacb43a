#include "run/summary.h"

#include <algorithm>
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
  if (!value.is_boolean()) throw NoSummary(absl::StrCat("'", key, "' is not true or false"));
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

void TakeTest(const Json& json, RunSummary& summary) {
  constexpr double kAny = std::numeric_limits<double>::lowest();
  summary.test_loss = Real(json, "test_loss", kAny);
  summary.test_accuracy = Real(json, "test_accuracy", 0, 1);
  summary.learned = Flag(json, "learned");
  if (json.contains("why_not_learned")) summary.why_not_learned = Text(json, "why_not_learned");
  if (json.contains("test_top5_accuracy")) {
    summary.test_top5_accuracy = Real(json, "test_top5_accuracy", 0, 1);
  }
  if (json.contains("test_perplexity")) {
    summary.test_perplexity = Real(json, "test_perplexity", 0);
  }
  if (json.contains("test_mae")) summary.test_mae = Real(json, "test_mae");
  if (json.contains("test_r2")) summary.test_r2 = Real(json, "test_r2", kAny);
}

RunSummary FromJson(const Json& json) {
  RunSummary summary;
  summary.state = State(json);
  summary.name = Text(json, "name");
  if (json.contains("message")) summary.message = Text(json, "message");
  summary.warnings = Texts(json, "warnings");
  summary.servers = SmallCount(json, "servers");
  summary.workers = SmallCount(json, "workers");
  summary.parameters = Count(json, "parameters");
  if (!At(json, "clock").is_null()) summary.clock = Count(json, "clock");
  summary.steps = Count(json, "steps");
  summary.worker_steps = Counts<uint64_t>(json, "worker_steps");
  summary.examples = Count(json, "examples");
  summary.dropped_steps = Count(json, "dropped_steps");
  // Absent in summaries of older versions.
  if (json.contains("overflowed_steps")) summary.overflowed_steps = Count(json, "overflowed_steps");
  if (json.contains("replaced_pictures")) {
    summary.replaced_pictures = Count(json, "replaced_pictures");
  }
  if (json.contains("went_back")) summary.went_back = Count(json, "went_back");
  if (json.contains("clocks_again")) summary.clocks_again = Count(json, "clocks_again");
  summary.seconds = Real(json, "seconds").value_or(0);
  summary.samples_per_second = Real(json, "samples_per_second").value_or(0);
  TakeTest(json, summary);
  summary.max_staleness = Count(json, "max_staleness");
  summary.bytes_sent = Count(json, "bytes_sent");
  summary.bytes_received = Count(json, "bytes_received");
  if (!At(json, "weights_sha256").is_null()) summary.weights_sha256 = Text(json, "weights_sha256");
  if (json.contains("devices")) summary.devices = Texts(json, "devices");
  summary.worker_restarts = Counts<uint32_t>(json, "worker_restarts");
  summary.server_restarts = Counts<uint32_t>(json, "server_restarts");
  for (const Json& times : At(json, "worker_times")) {
    summary.worker_times[SmallCount(times, "rank")] = TimesFrom(times);
  }
  return summary;
}

void SetRate(RunSummary& summary) {
  if (summary.seconds <= 0) return;
  summary.samples_per_second = static_cast<double>(summary.examples) / summary.seconds;
}

}  // namespace

uint32_t RunSummary::restarts() const {
  const uint32_t workers =
      std::accumulate(worker_restarts.begin(), worker_restarts.end(), uint32_t{0});
  return std::accumulate(server_restarts.begin(), server_restarts.end(), workers);
}

void AddHistory(const RunHistory& history, RunSummary& summary) {
  summary.worker_times = SumByWorker(history);
  for (const auto& [rank, worker] : summary.worker_times) {
    summary.steps += worker.steps();
    if (summary.worker_steps.size() <= rank) summary.worker_steps.resize(rank + 1);
    summary.worker_steps[rank] += worker.steps();
    summary.examples += worker.examples();
    summary.max_staleness = std::max(summary.max_staleness, worker.staleness());
    summary.bytes_sent += worker.bytes_sent();
    summary.bytes_received += worker.bytes_received();
  }
  if (const std::string gaps = history.Gaps(); !gaps.empty()) {
    summary.warnings.push_back(absl::StrCat(history.file, ": ", gaps));
  }
  summary.dropped_steps = history.told.dropped_steps();
  summary.overflowed_steps = history.told.overflowed_steps();
  summary.replaced_pictures = history.told.replaced_pictures();
  summary.went_back = history.went_back;
  summary.clocks_again = history.clocks_again;
  summary.seconds = history.seconds;
  SetRate(summary);
}

void SetSteps(uint64_t steps, const RunHistory& history, RunSummary& summary) {
  if (summary.steps > 0 && summary.steps != steps) {
    const double share = static_cast<double>(steps) / static_cast<double>(summary.steps);
    summary.examples =
        static_cast<uint64_t>(std::llround(static_cast<double>(summary.examples) * share));
  }
  summary.steps = steps;
  // With gaps in the history no rate is set, because the rate of a part would be wrong for the
  // whole run.
  if (!history.HasGap()) SetRate(summary);
}

void SetSteps(std::vector<uint64_t> steps, const RunHistory& history, RunSummary& summary) {
  SetSteps(std::accumulate(steps.begin(), steps.end(), uint64_t{0}), history, summary);
  summary.worker_steps = std::move(steps);
}

std::string SummaryJson(const RunSummary& summary) {
  Json json;
  json["name"] = summary.name;
  json["state"] = summary.state;
  if (!summary.message.empty()) json["message"] = summary.message;
  json["warnings"] = summary.warnings;
  json["servers"] = summary.servers;
  json["workers"] = summary.workers;
  json["parameters"] = summary.parameters;
  json["clock"] = summary.clock.has_value() ? Json(*summary.clock) : Json();
  json["steps"] = summary.steps;
  json["worker_steps"] = summary.worker_steps;
  json["examples"] = summary.examples;
  json["dropped_steps"] = summary.dropped_steps;
  json["overflowed_steps"] = summary.overflowed_steps;
  json["replaced_pictures"] = summary.replaced_pictures;
  json["went_back"] = summary.went_back;
  json["clocks_again"] = summary.clocks_again;
  json["seconds"] = Number(summary.seconds);
  json["samples_per_second"] = Number(summary.samples_per_second);
  json["test_loss"] = Number(summary.test_loss);
  json["test_accuracy"] = Number(summary.test_accuracy);
  json["learned"] = summary.learned.has_value() ? Json(*summary.learned) : Json();
  if (!summary.why_not_learned.empty()) json["why_not_learned"] = summary.why_not_learned;
  if (summary.test_top5_accuracy.has_value()) {
    json["test_top5_accuracy"] = Number(summary.test_top5_accuracy);
  }
  if (summary.test_perplexity.has_value())
    json["test_perplexity"] = Number(summary.test_perplexity);
  if (summary.test_mae.has_value()) json["test_mae"] = Number(summary.test_mae);
  if (summary.test_r2.has_value()) json["test_r2"] = Number(summary.test_r2);
  json["max_staleness"] = summary.max_staleness;
  json["bytes_sent"] = summary.bytes_sent;
  json["bytes_received"] = summary.bytes_received;
  json["weights_sha256"] = summary.weights_sha256.empty() ? Json() : Json(summary.weights_sha256);
  if (!summary.devices.empty()) json["devices"] = summary.devices;
  json["restarts"] = summary.restarts();
  json["worker_restarts"] = summary.worker_restarts;
  json["server_restarts"] = summary.server_restarts;
  json["worker_times"] = Json::array();
  for (const auto& [rank, times] : summary.worker_times) {
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
