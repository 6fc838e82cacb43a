#include "deploy/launcher/finish.h"

#include <filesystem>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/sha256.h"
#include "common/status.h"
#include "config/job.h"
#include "deploy/base/format.h"
#include "deploy/launcher/report/curves_svg.h"
#include "deploy/launcher/report/report_html.h"
#include "deploy/launcher/run_folder.h"
#include "deploy/launcher/trained_model.h"

namespace leeway {
namespace {

constexpr uint64_t kSummaryBytesMax = 16 << 20;

std::string UpdateName(const v1::Update& update) {
  switch (update.type_case()) {
    case v1::Update::kSgd:
      return update.sgd().nesterov()       ? "sgd with Nesterov momentum"
             : update.sgd().momentum() > 0 ? "sgd with momentum"
                                           : "sgd";
    case v1::Update::kAdagrad:
      return "adagrad";
    case v1::Update::kAdam:
      return "adam";
    case v1::Update::kAdamw:
      return "adamw";
    case v1::Update::TYPE_NOT_SET:
      break;
  }
  return "no update";
}

std::string ConsistencyName(const v1::Consistency& consistency) {
  switch (consistency.mode()) {
    case v1::CONSISTENCY_MODE_SYNC:
      return "synchronous";
    case v1::CONSISTENCY_MODE_BOUNDED:
      return absl::StrCat("bounded staleness ", consistency.staleness());
    case v1::CONSISTENCY_MODE_ASYNC:
      return "asynchronous";
  }
  return "";
}

// The coordinator's word comes first: it knows why.
void SetOutcome(const FinishInput& input, const RunHistory& history, RunSummary& summary) {
  // Stopped before the coordinator was there, or could be, it has said nothing of this start.
  const std::string state = history.ends > input.ends_before ? history.state : "";
  if (!input.failure.empty() || state == "failed") {
    summary.state = "failed";
    const bool told = state == "failed" && !history.message.empty();
    summary.message = told ? history.message : input.failure;
  } else if (!state.empty()) {
    summary.state = state;
  } else {
    summary.state = input.stop_requested ? "stopped" : "finished";
  }
}

absl::Status AddModel(const FinishInput& input, RunSummary& summary) {
  absl::StatusOr<TrainedModel> model = LoadTrainedModel(input.run_dir);
  // A run that failed or was stopped early may have none.
  if (absl::IsNotFound(model.status()) && summary.state != "finished") return absl::OkStatus();
  RETURN_IF_ERROR(Annotate(model.status(), "reading the trained model"));
  summary.parameters = model->manifest.schema().total();
  summary.clock = model->manifest.clock();
  summary.weights_sha256 = WeightsSha256(model->weights.span());
  RETURN_IF_ERROR(Annotate(ExportModel(*model, input.run_dir + "/" + kModelFile),
                           "exporting the trained model"));
  const auto result = EvaluateModel(input.job, input.data_dir, model->weights.span());
  RETURN_IF_ERROR(Annotate(result.status(), "evaluating the trained model"));
  if (result->has_value()) {
    summary.test_loss = (*result)->loss;
    summary.test_accuracy = (*result)->accuracy;
  }
  return absl::OkStatus();
}

std::string Place(const char* what, const std::string& run_dir, const char* file) {
  const std::string path = absl::StrCat(run_dir, "/", file);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return "";
  return absl::StrCat("  ", PadRight(what, 12), path, "\n");
}

// Empty, or the beginning of a list.
std::string Dropped(const RunSummary& summary) {
  if (summary.dropped_steps == 0) return "";
  const auto dropped = static_cast<double>(summary.dropped_steps);
  return absl::StrCat(Percent(dropped / (dropped + static_cast<double>(summary.steps))),
                      " of the steps dropped, ");
}

std::string Restarts(const RunSummary& summary) {
  const uint32_t all = summary.restarts();
  const uint32_t servers =
      std::accumulate(summary.server_restarts.begin(), summary.server_restarts.end(), uint32_t{0});
  return absl::StrCat(all, all == 1 ? " restart" : " restarts",
                      servers > 0 ? absl::StrCat(", ", servers, " of servers") : "");
}

}  // namespace

std::string DescribeAlgorithm(const v1::TrainingJob& job) {
  std::string text = ConsistencyName(job.consistency());
  const v1::Exchange& exchange = job.exchange();
  if (exchange.has_delta()) {
    absl::StrAppend(&text, ", delta exchange every ", exchange.delta().local_steps(),
                    " steps, worker ", UpdateName(exchange.delta().optimizer()));
  } else if (exchange.has_elastic()) {
    absl::StrAppend(&text, ", elastic exchange every ", exchange.elastic().every(),
                    " steps, worker ", UpdateName(exchange.elastic().optimizer()));
  } else {
    absl::StrAppend(&text, ", gradient exchange");
  }
  if (job.has_update()) absl::StrAppend(&text, ", server ", UpdateName(job.update()));
  return text;
}

absl::StatusOr<RunSummary> FinishRun(const FinishInput& input) {
  ASSIGN_OR_RETURN(const RunHistory history, ReadHistory(input.run_dir + "/" + kMetricsFile));
  RunSummary summary;
  summary.name = input.job.metadata().name();
  summary.servers = input.job.servers().count();
  summary.workers = input.job.workers().count();
  summary.worker_restarts = input.worker_restarts;
  summary.server_restarts = input.server_restarts;
  AddHistory(history, summary);
  SetOutcome(input, history, summary);
  if (const absl::Status status = AddModel(input, summary); !status.ok()) {
    summary.state = "failed";
    absl::StrAppend(&summary.message, summary.message.empty() ? "" : "\n", status.message());
  }
  RETURN_IF_ERROR(WriteFileAtomically(input.run_dir + "/" + kSummaryFile, SummaryJson(summary)));
  RETURN_IF_ERROR(WriteReport(input.run_dir, input.job, history, summary));
  return summary;
}

absl::StatusOr<RunSummary> ReadSummary(const std::string& run_dir) {
  const std::string file = run_dir + "/" + kSummaryFile;
  ASSIGN_OR_RETURN(const std::string json, ReadFile(file, kSummaryBytesMax));
  return ParseSummary(json, file);
}

absl::Status WriteReport(const std::string& run_dir, const v1::TrainingJob& job,
                         const RunHistory& history, const RunSummary& summary) {
  ReportInput input{.summary = summary,
                    .history = history,
                    .algorithm = DescribeAlgorithm(job),
                    .checkpoints = ListCheckpoints(run_dir),
                    .job_yaml = ToYaml(job),
                    .curves_svg = CurvesSvg(history, summary.name)};
  RETURN_IF_ERROR(WriteFileAtomically(run_dir + "/" + kCurvesFile, input.curves_svg));
  return WriteFileAtomically(run_dir + "/" + kReportFile, ReportHtml(input));
}

std::string DescribeOutcome(const RunSummary& summary, const std::string& run_dir,
                            const std::string& data) {
  std::string text =
      absl::StrCat(summary.state, ": ", Thousands(summary.steps), " steps of ", summary.workers,
                   summary.workers == 1 ? " worker" : " workers", " in ", Lasting(summary.seconds),
                   "  (", Thousands(static_cast<uint64_t>(summary.samples_per_second)),
                   " samples/s, ", Dropped(summary), "staleness at most ", summary.max_staleness,
                   ", ", Restarts(summary), ")\n");
  if (summary.test_accuracy.has_value()) {
    absl::StrAppend(&text, "test accuracy ", Percent(*summary.test_accuracy), "  (loss ",
                    Fixed(*summary.test_loss, 4), ")\n");
  } else if (summary.test_loss.has_value()) {
    absl::StrAppend(&text, "test loss ", Fixed(*summary.test_loss, 4), "\n");
  }
  absl::StrAppend(&text, Place("model", run_dir, kModelFile), Place("report", run_dir, kReportFile),
                  Place("curves", run_dir, kCurvesFile), Place("summary", run_dir, kSummaryFile),
                  Place("metrics", run_dir, kMetricsFile),
                  Place("checkpoints", run_dir, "checkpoints"));
  if (summary.state != "finished" && summary.clock.has_value()) {
    absl::StrAppend(&text, "To go on: leeway train --resume --run-dir ", run_dir,
                    data.empty() ? "" : " --data " + data, "\n");
  }
  return text;
}

}  // namespace leeway
