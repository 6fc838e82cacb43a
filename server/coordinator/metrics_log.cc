#include "server/coordinator/metrics_log.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/status.h"

namespace leeway {
namespace {

using Json = nlohmann::ordered_json;

// Text from a peer may be any bytes: what is not UTF-8 is replaced.
std::string Dump(const Json& line) {
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

constexpr uint64_t kChunkBytes = 64 << 10;

// How much of the file is whole lines.
absl::StatusOr<uint64_t> WholeLines(const std::string& path) {
  ASSIGN_OR_RETURN(const FileReader file, FileReader::Open(path));
  std::vector<uint8_t> chunk;
  for (uint64_t end = file.size(); end > 0; end -= chunk.size()) {
    chunk.resize(std::min(kChunkBytes, end));
    RETURN_IF_ERROR(file.ReadAt(end - chunk.size(), chunk));
    const auto last = std::find(chunk.rbegin(), chunk.rend(), '\n');
    if (last != chunk.rend()) return end - static_cast<uint64_t>(last - chunk.rbegin());
  }
  return 0;
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
  // fp16.
  if (metrics.loss_scale() > 0) {
    line["overflowed_steps"] = metrics.overflowed_steps();
    line["loss_scale"] = metrics.loss_scale();
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
  if (metrics.has_test_top5_accuracy()) line["test_top5_accuracy"] = metrics.test_top5_accuracy();
  if (metrics.has_test_mae()) line["test_mae"] = metrics.test_mae();
  if (metrics.has_test_r2()) line["test_r2"] = metrics.test_r2();
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
  if (event.shape) {
    line["workers"] = event.shape->workers;
    line["steps_per_clock"] = event.shape->steps_per_clock;
    line["sync"] = event.shape->sync;
  }
  return Dump(line);
}

absl::StatusOr<std::unique_ptr<MetricsLog>> MetricsLog::Open(const std::string& path) {
  const size_t slash = path.rfind('/');
  ASSIGN_OR_RETURN(OpenFolder folder,
                   OpenFolder::Open(slash == std::string::npos ? "." : path.substr(0, slash + 1)));
  std::unique_ptr<MetricsLog> log(new MetricsLog(path, std::move(folder)));
  RETURN_IF_ERROR(log->OpenFile());
  return log;
}

absl::Status MetricsLog::OpenFile() {
  // O_NONBLOCK: a pipe in its place is refused below, not waited on.
  file_.emplace(
      open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
  if (**file_ < 0) return Error("opening");
  const auto whole = WholeLines(path_);
  RETURN_IF_ERROR(Annotate(whole.status(), "opening the metrics"));
  // Else the next line would continue a broken one.
  return ftruncate(**file_, static_cast<off_t>(*whole)) == 0
             ? absl::OkStatus()
             : Error("dropping the broken last line of");
}

absl::Status MetricsLog::Error(const char* doing) const {
  return absl::UnavailableError(absl::StrCat(doing, " ", path_, ": ", std::strerror(errno)));
}

absl::Status MetricsLog::Append(const std::string& lines) {
  RETURN_IF_ERROR(folder_.CheckThere());
  struct stat found;
  if (fstat(**file_, &found) != 0 || found.st_nlink == 0) RETURN_IF_ERROR(OpenFile());
  if (fstat(**file_, &found) != 0) return Error("looking at");
  for (size_t done = 0; done < lines.size();) {
    const ssize_t written = write(**file_, lines.data() + done, lines.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written >= 0) {
      done += static_cast<size_t>(written);
      continue;
    }
    const absl::Status status = Error("writing to");
    // A full disk takes half a line; the next one must not continue it.
    if (ftruncate(**file_, found.st_size) != 0) return Error("dropping half a line of");
    return status;
  }
  return absl::OkStatus();
}

}  // namespace leeway
