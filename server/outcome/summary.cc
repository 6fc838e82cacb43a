#include "server/outcome/summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no NaN.
Json Number(std::optional<double> value) {
  return value.has_value() && std::isfinite(*value) ? Json(*value) : Json();
}

template <typename T>
std::optional<T> Optional(const Json& json, const char* key) {
  if (!json.contains(key) || json.at(key).is_null()) return std::nullopt;
  return json.at(key).get<T>();
}

Json TimesJson(uint32_t rank, const StepTimes& times) {
  return {{"rank", rank},
          {"data_seconds", Number(times.data)},
          {"compute_seconds", Number(times.compute)},
          {"forward_seconds", Number(times.forward)},
          {"backward_seconds", Number(times.backward)},
          {"exchange_seconds", Number(times.exchange)},
          {"wait_seconds", Number(times.wait)},
          {"hidden_share", Number(times.hidden())}};
}

StepTimes TimesFrom(const Json& json) {
  const auto seconds = [&](const char* key) { return Optional<double>(json, key).value_or(0); };
  return {.data = seconds("data_seconds"),
          .compute = seconds("compute_seconds"),
          .forward = seconds("forward_seconds"),
          .backward = seconds("backward_seconds"),
          .exchange = seconds("exchange_seconds"),
          .wait = seconds("wait_seconds")};
}

RunSummary FromJson(const Json& json) {
  RunSummary summary;
  summary.name = json.value("name", "");
  summary.state = json.value("state", "");
  summary.message = json.value("message", "");
  summary.warnings = json.value("warnings", std::vector<std::string>{});
  summary.servers = json.value("servers", 0u);
  summary.workers = json.value("workers", 0u);
  summary.parameters = json.value("parameters", uint64_t{0});
  summary.clock = Optional<uint64_t>(json, "clock");
  summary.steps = json.value("steps", uint64_t{0});
  summary.worker_steps = json.value("worker_steps", std::vector<uint64_t>{});
  summary.examples = json.value("examples", uint64_t{0});
  summary.dropped_steps = json.value("dropped_steps", uint64_t{0});
  summary.seconds = Optional<double>(json, "seconds").value_or(0);
  summary.samples_per_second = Optional<double>(json, "samples_per_second").value_or(0);
  summary.test_loss = Optional<double>(json, "test_loss");
  summary.test_accuracy = Optional<double>(json, "test_accuracy");
  summary.learned = Optional<bool>(json, "learned");
  summary.why_not_learned = json.value("why_not_learned", "");
  summary.test_mae = Optional<double>(json, "test_mae");
  summary.test_r2 = Optional<double>(json, "test_r2");
  summary.max_staleness = json.value("max_staleness", uint64_t{0});
  summary.bytes_sent = json.value("bytes_sent", uint64_t{0});
  summary.bytes_received = json.value("bytes_received", uint64_t{0});
  summary.weights_sha256 = Optional<std::string>(json, "weights_sha256").value_or("");
  summary.worker_restarts = json.value("worker_restarts", std::vector<uint32_t>{});
  summary.server_restarts = json.value("server_restarts", std::vector<uint32_t>{});
  if (json.contains("worker_times")) {
    for (const Json& times : json.at("worker_times")) {
      summary.worker_times[times.at("rank").get<uint32_t>()] = TimesFrom(times);
    }
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
  for (const RunHistory::Step& step : history.steps) {
    summary.steps += step.steps;
    if (summary.worker_steps.size() <= step.rank) summary.worker_steps.resize(step.rank + 1);
    summary.worker_steps[step.rank] += step.steps;
    summary.examples += step.examples;
    summary.max_staleness = std::max(summary.max_staleness, step.staleness);
    summary.bytes_sent += step.bytes_sent;
    summary.bytes_received += step.bytes_received;
    summary.worker_times[step.rank] += step.times;
  }
  if (const std::string gaps = history.Gaps(); !gaps.empty()) {
    summary.warnings.push_back("metrics.jsonl: " + gaps);
  }
  summary.dropped_steps = history.dropped_steps;
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
  // The seconds of a part are no measure of the whole.
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
  json["seconds"] = Number(summary.seconds);
  json["samples_per_second"] = Number(summary.samples_per_second);
  json["test_loss"] = Number(summary.test_loss);
  json["test_accuracy"] = Number(summary.test_accuracy);
  json["learned"] = summary.learned.has_value() ? Json(*summary.learned) : Json();
  if (!summary.why_not_learned.empty()) json["why_not_learned"] = summary.why_not_learned;
  if (summary.test_mae.has_value()) json["test_mae"] = Number(summary.test_mae);
  if (summary.test_r2.has_value()) json["test_r2"] = Number(summary.test_r2);
  json["max_staleness"] = summary.max_staleness;
  json["bytes_sent"] = summary.bytes_sent;
  json["bytes_received"] = summary.bytes_received;
  json["weights_sha256"] = summary.weights_sha256.empty() ? Json() : Json(summary.weights_sha256);
  json["restarts"] = summary.restarts();
  json["worker_restarts"] = summary.worker_restarts;
  json["server_restarts"] = summary.server_restarts;
  json["worker_times"] = Json::array();
  for (const auto& [rank, times] : summary.worker_times) {
    json["worker_times"].push_back(TimesJson(rank, times));
  }
  // A log's last lines may hold bytes that are no UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<RunSummary> ParseSummary(const std::string& json, const std::string& file) {
  try {
    RunSummary summary = FromJson(Json::parse(json));
    if (summary.state.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(file, ": no run's summary: no state"));
    }
    return summary;
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": no run's summary: ", error.what()));
  }
}

}  // namespace leeway
