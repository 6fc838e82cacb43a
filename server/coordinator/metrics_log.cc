#include "server/coordinator/metrics_log.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace leeway {
namespace {

using Json = nlohmann::ordered_json;

// Text from a peer may be any bytes: what is not UTF-8 is replaced.
std::string Dump(const Json& line) {
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Else the next line would continue it.
absl::Status DropBrokenLine(const std::string& path) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error || size == 0) return absl::OkStatus();
  std::ifstream file(path, std::ios::binary);
  uint64_t whole = size;
  for (char last = 0; whole > 0; --whole) {
    file.seekg(static_cast<std::streamoff>(whole - 1));
    if (!file.get(last) || last == '\n') break;
  }
  if (whole < size) std::filesystem::resize_file(path, whole, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("dropping the broken last line of ", path, ": ", error.message()));
}

}  // namespace

std::string MetricsLine(const StepRecord& record, double time) {
  const v1::StepMetrics& metrics = record.metrics;
  Json line = {{"event", "step"},
               {"time", time},
               {"rank", record.rank},
               {"clock", metrics.clock()},
               {"epoch", metrics.epoch()},
               {"steps", metrics.steps()},
               {"examples", metrics.examples()},
               {"train_loss", metrics.train_loss()},
               {"staleness", metrics.staleness()},
               {"learning_rate", metrics.learning_rate()},
               {"data_seconds", metrics.data_seconds()},
               {"compute_seconds", metrics.compute_seconds()},
               {"forward_seconds", metrics.forward_seconds()},
               {"backward_seconds", metrics.backward_seconds()},
               {"exchange_seconds", metrics.exchange_seconds()},
               {"wait_seconds", metrics.wait_seconds()},
               {"bytes_sent", metrics.bytes_sent()},
               {"bytes_received", metrics.bytes_received()}};
  if (metrics.dropped_steps() > 0) {
    line["dropped_steps"] = metrics.dropped_steps();
    line["dropped_examples"] = metrics.dropped_examples();
  }
  if (metrics.skipped_contributions() > 0) {
    line["skipped_contributions"] = metrics.skipped_contributions();
  }
  if (metrics.clipped_contributions() > 0) {
    line["clipped_contributions"] = metrics.clipped_contributions();
  }
  // Nothing of it counts: its loss is no point of a curve.
  if (metrics.steps() == 0 && metrics.dropped_steps() > 0) line["event"] = "dropped";
  return Dump(line);
}

std::string MetricsLine(const EvaluationRecord& record, double time) {
  const v1::EvaluationMetrics& metrics = record.metrics;
  Json line = {{"event", "evaluation"},         {"time", time},
               {"rank", record.rank},           {"clock", metrics.clock()},
               {"epoch", metrics.epoch()},      {"test_loss", metrics.test_loss()},
               {"examples", metrics.examples()}};
  if (metrics.has_test_accuracy()) line["test_accuracy"] = metrics.test_accuracy();
  return Dump(line);
}

std::string MetricsLine(const Event& event, double time) {
  Json line = {{"event", event.name}, {"time", time}};
  if (event.rank) line["rank"] = *event.rank;
  if (event.server) line["server"] = *event.server;
  if (event.incarnation) line["incarnation"] = *event.incarnation;
  if (event.clock) line["clock"] = *event.clock;
  if (!event.state.empty()) line["state"] = event.state;
  if (!event.message.empty()) line["message"] = event.message;
  return Dump(line);
}

absl::StatusOr<std::unique_ptr<MetricsLog>> MetricsLog::Open(const std::string& path) {
  RETURN_IF_ERROR(DropBrokenLine(path));
  std::ofstream file(path, std::ios::app | std::ios::binary);
  if (!file) {
    return absl::UnavailableError(
        absl::StrCat("opening ", path, " for the metrics: ", std::strerror(errno)));
  }
  return std::unique_ptr<MetricsLog>(new MetricsLog(path, std::move(file)));
}

absl::Status MetricsLog::Append(const std::string& lines) {
  file_ << lines << std::flush;
  if (file_) return absl::OkStatus();
  const absl::Status status =
      absl::UnavailableError(absl::StrCat("writing to ", path_, ": ", std::strerror(errno)));
  // A full disk takes half a line; the next one must not continue it.
  file_.close();
  DropBrokenLine(path_).IgnoreError();
  file_.clear();
  file_.open(path_, std::ios::app | std::ios::binary);
  return status;
}

}  // namespace leeway
