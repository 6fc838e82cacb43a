#include "run/metrics_log.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "common/object_store/address.h"
#include "common/status.h"
#include "common/storage/segments.h"
#include "run/core/figures.h"
#include "run/metrics_file.h"
#include "run/run_folder.h"

namespace leeway {
namespace {

using Json = nlohmann::ordered_json;

// Replaces bytes that are not UTF-8, because a string from a peer may contain any bytes.
std::string Dump(const Json& line) {
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json ValueOf(const Figure& figure, const v1::StepMetrics& metrics) {
  if (!figure.IsTold(metrics)) return {};
  return figure.IsCount() ? Json(figure.Count(metrics)) : Json(figure.Real(metrics));
}

// Converts the error for a bucket that no longer exists to the error for a removed folder.
absl::Status AsGone(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) ? absl::NotFoundError(status.message()) : status;
}

// Writes to a storage without appends, as files metrics/000000.jsonl and so on.
class MetricsSegments final : public MetricsLog {
 public:
  explicit MetricsSegments(std::unique_ptr<SegmentWriter> segments)
      : segments_(std::move(segments)) {}

  absl::Status Append(const std::string& lines) override {
    return AsGone(segments_->Append(lines));
  }
  absl::Status Tick() override { return AsGone(segments_->Tick()); }
  absl::Status Keep() override { return AsGone(segments_->Keep()); }

 private:
  const std::unique_ptr<SegmentWriter> segments_;
};

}  // namespace

std::string MetricsLine(const StepRecord& record, double time) {
  const v1::StepMetrics& metrics = record.metrics;
  Json line = {{"event", "step"}, {"time", time}, {"rank", record.rank}};
  for (const Figure& figure : StepFigures()) {
    if (figure.IsLogged(metrics)) line[figure.name] = ValueOf(figure, metrics);
  }
  // No step of this line counts, so the line's loss must not become a point of a curve.
  if (metrics.steps() == 0 && metrics.dropped_steps() > 0) line["event"] = "dropped";
  return Dump(line);
}

std::string MetricsLine(const EvaluationRecord& record, double time) {
  const v1::EvaluationMetrics& metrics = record.metrics;
  Json line = {{"event", "evaluation"},         {"time", time},
               {"rank", record.rank},           {"clock", metrics.clock()},
               {"epoch", metrics.epoch()},      {"test_loss", metrics.test_loss()},
               {"examples", metrics.examples()}};
  for (const TestFigure& figure : TestFigures()) {
    if (const auto value = figure.In(metrics)) line[figure.name] = *value;
  }
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
  if (event.goes_on) line["goes_on"] = true;
  return Dump(line);
}

absl::StatusOr<std::unique_ptr<MetricsLog>> MetricsLog::Open(const std::string& run_dir) {
  if (!IsObjectLocation(run_dir)) return MetricsFile::Open(run_dir + "/" + kMetricsFile);
  ASSIGN_OR_RETURN(std::unique_ptr<SegmentWriter> segments,
                   SegmentWriter::Open(run_dir + "/" + kMetricsFolder, {.extension = "jsonl"}));
  return std::make_unique<MetricsSegments>(std::move(segments));
}

}  // namespace leeway
