#include "launcher/commands/finish.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/counted.h"
#include "common/exit_code.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "common/text/format.h"
#include "config/external.h"
#include "config/job.h"
#include "launcher/commands/learning.h"
#include "launcher/commands/test_result.h"
#include "launcher/report/curves_svg.h"
#include "launcher/report/report_html.h"
#include "launcher/supervision/worsening.h"
#include "run/outcome.h"
#include "run/run_folder.h"
#include "server/checkpoint/coordinator_record.h"

namespace leeway {
namespace {

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
    case v1::Update::kLion:
      return "lion";
    case v1::Update::kCustom:
      return update.custom().rule();
    case v1::Update::TYPE_NOT_SET:
      break;
  }
  return "no update";
}

// Returns the name of the optimizer of a worker's own steps.
std::string OptimizerName(const v1::TrainingJob& job, const v1::Update& optimizer) {
  return IsExternal(job) ? "with the program's own optimizer" : UpdateName(optimizer);
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

// Sets state and message. The coordinator's record takes precedence: a job that the coordinator
// recorded as finished is finished, even if processes of this launcher ended before. The
// coordinator also knows why a job failed. A job has failed, too, if the launcher gave up and
// therefore told the coordinator to stop.
void SetOutcome(const FinishInput& input, RunSummary& summary) {
  const v1::JobState end = input.end ? input.end->outcome() : v1::JOB_STARTING;
  if (end == v1::JOB_FINISHED) {
    summary.state = "finished";
    // The reason why the job finished before its full length, if it did.
    summary.message = input.end->message();
  } else if (end == v1::JOB_FAILED) {
    summary.state = "failed";
    summary.message = input.end->message().empty() ? input.failure : input.end->message();
  } else if (!input.failure.empty()) {
    summary.state = "failed";
    summary.message = input.failure;
  } else if (end == v1::JOB_STOPPED || input.stop_requested) {
    summary.state = "stopped";
  } else {
    summary.state = "failed";
    summary.message =
        "the job's processes have ended, but coordinator.json does not say how the job ended";
  }
}

// Marks the run as failed, and appends the error to earlier ones.
void FailAlso(const absl::Status& status, RunSummary& summary) {
  summary.state = "failed";
  absl::StrAppend(&summary.message, summary.message.empty() ? "" : "\n", status.message());
}

// Adds the result of an external job. Only the job's program can evaluate its model, so this uses
// the last evaluation that the program reported, if any.
void AddOwnResult(const TrainedModel& model, const RunHistory& history, RunSummary& summary) {
  AddLastEvaluation(history, summary);
  const Learning learning = JudgeLearning(std::nullopt, model.weights.span());
  summary.learned = learning.learned;
  summary.why_not_learned = learning.why;
}

// Adds whether the last evaluation, which is that of the trained model, is much worse than the best
// one.
void AddWorsening(const RunHistory& history, RunSummary& summary) {
  std::vector<Evaluated> evaluations;
  for (const RunHistory::Evaluation& each : history.evaluations) {
    evaluations.push_back({each.clock, each.test_loss, each.test_accuracy});
  }
  if (!summary.test_loss.has_value()) return;
  evaluations.push_back({summary.clock.value_or(0), *summary.test_loss, summary.test_accuracy});
  const std::string was = MuchWorse(evaluations);
  if (was.empty()) return;
  summary.warnings.push_back(
      absl::StrCat("this run became much worse during training: ", was,
                   "; lower the learning rate, give its schedule a warm_up, or use "
                   "evaluation.early_stop"));
}

absl::Status AddTestResult(const FinishInput& input, const TrainedModel& model,
                           const RunHistory& history, RunSummary& summary) {
  if (IsExternal(input.job)) {
    AddOwnResult(model, history, summary);
    return absl::OkStatus();
  }
  const auto result = EvaluateModel(input.job, input.data_dir, model.Evaluated());
  RETURN_IF_ERROR(Annotate(result.status(), "evaluating the trained model"));
  std::optional<Tested> tested;
  if (result->has_value()) {
    summary.test_loss = (*result)->loss;
    summary.test_accuracy = (*result)->accuracy;
    summary.test_top5_accuracy = (*result)->top5_accuracy;
    summary.test_perplexity = (*result)->perplexity;
    summary.test_mae = (*result)->mae;
    summary.test_r2 = (*result)->r2;
    if (const auto& constant = (*result)->constant; constant.has_value()) {
      tested = {{(*result)->loss, (*result)->accuracy}, *constant, (*result)->examples};
    }
  }
  const Learning learning = JudgeLearning(tested, model.weights.span());
  summary.learned = learning.learned;
  summary.why_not_learned = learning.why;
  return absl::OkStatus();
}

// Returns the job with the update rule that a worker brought, if a worker did.
v1::TrainingJob WithBroughtUpdate(v1::TrainingJob job, const std::string& run_dir) {
  if (!BringsUpdate(job)) return job;
  const auto record = ReadCoordinatorRecord(run_dir);
  const bool known = record.ok() && record->has_value() && (*record)->has_update();
  if (known) *job.mutable_update() = (*record)->update();
  return job;
}

// Returns the places of the run's files that exist, a line for each.
std::string Places(const RunPlace& place) {
  const std::pair<const char*, const char*> files[] = {
      {"model", kModelFile},         {"average", kAverageModelFile},
      {"report", kReportFile},       {"curves", kCurvesFile},
      {"summary", kSummaryFile},     {"metrics", MetricsName(place.location)},
      {"checkpoints", "checkpoints"}};
  // An error of listing is ignored here, because another step reports it.
  const auto names = ListStored(place.location).value_or(std::vector<std::string>());
  std::string text;
  for (const auto& [what, file] : files) {
    if (std::find(names.begin(), names.end(), file) == names.end()) continue;
    absl::StrAppend(&text, "  ", PadRight(what, 12), place.location, "/", file, "\n");
  }
  if (place.in_store()) {
    absl::StrAppend(&text, "  ", PadRight("logs", 12), place.here, "/", kLogsFolder, "\n");
  }
  return text;
}

// Returns the share of dropped steps as the beginning of a list. Empty if no step was dropped.
std::string Dropped(const RunSummary& summary) {
  if (summary.dropped_steps == 0) return "";
  const auto dropped = static_cast<double>(summary.dropped_steps);
  return absl::StrCat(Percent(dropped / (dropped + static_cast<double>(summary.steps))),
                      " of the steps dropped, ");
}

std::string Overflowed(const RunSummary& summary) {
  if (summary.overflowed_steps == 0) return "";
  return absl::StrCat(Counted(summary.overflowed_steps, "step"), " left out by fp16, ");
}

std::string Replaced(const RunSummary& summary) {
  if (summary.replaced_pictures == 0) return "";
  return absl::StrCat("damaged pictures replaced ", Counted(summary.replaced_pictures, "time"),
                      ", ");
}

// Returns text that tells the user of `auto` that workers found no GPU.
std::string Devices(const RunSummary& summary) {
  const std::vector<std::string>& devices = summary.devices;
  const auto cpus = static_cast<size_t>(std::count(devices.begin(), devices.end(), "cpu"));
  if (cpus == 0) return "";
  const std::string who =
      cpus == devices.size()
          ? "computed on the CPU, because no worker could use a GPU"
          : absl::StrCat(cpus, " of ", devices.size(),
                         " workers computed on the CPU, because they could not use a GPU");
  return absl::StrCat(who, " (workers.device: auto; see the workers' logs)\n");
}

std::string Restarts(const RunSummary& summary) {
  const uint32_t all = summary.restarts();
  const uint32_t servers =
      std::accumulate(summary.server_restarts.begin(), summary.server_restarts.end(), uint32_t{0});
  return absl::StrCat(all, all == 1 ? " restart" : " restarts",
                      servers > 0 ? absl::StrCat(", ", servers, " of servers") : "");
}

// Returns how often the job went back to a checkpoint, as the end of a list. Empty if it never did.
std::string WentBack(const RunSummary& summary) {
  if (summary.went_back == 0) return "";
  return absl::StrCat(", went back ",
                      summary.went_back == 1 ? "once" : absl::StrCat(summary.went_back, " times"),
                      ", ", Counted(summary.clocks_again, "clock"), " done again");
}

}  // namespace

std::string DescribeAlgorithm(const v1::TrainingJob& job) {
  std::string text = ConsistencyName(job.consistency());
  const v1::Exchange& exchange = job.exchange();
  if (exchange.has_delta()) {
    absl::StrAppend(&text, ", delta exchange every ", exchange.delta().local_steps(),
                    " steps, worker ", OptimizerName(job, exchange.delta().optimizer()));
  } else if (exchange.has_elastic()) {
    absl::StrAppend(&text, ", elastic exchange every ", exchange.elastic().every(),
                    " steps, worker ", OptimizerName(job, exchange.elastic().optimizer()));
  } else {
    absl::StrAppend(&text, ", gradient exchange");
  }
  if (job.has_update()) absl::StrAppend(&text, ", server ", UpdateName(job.update()));
  if (BringsUpdate(job)) absl::StrAppend(&text, ", server with the program's own optimizer");
  return text;
}

RunSummary FinishRun(const FinishInput& input) {
  RunSummary summary;
  // The model is exported first, because it is worth more than the summary and the report.
  const absl::StatusOr<TrainedModel> model = ExportNewest(input.run_dir, summary);
  const RunHistory history = ReadHistory(input.run_dir + "/" + kMetricsFile);
  const absl::Status evaluated =
      model.ok() ? AddTestResult(input, *model, history, summary) : model.status();
  AddWorsening(history, summary);
  SetOutcome(input, summary);
  if (input.end) summary.devices = {input.end->devices().begin(), input.end->devices().end()};
  // A failed run may have trained beyond its newest checkpoint, so its figures do not come from the
  // checkpoint. The same holds if newer checkpoints are damaged.
  const bool whole = model.ok() && model->passed_over.empty() && summary.state != "failed";
  AddRun(input.job, input.run_dir, history, whole ? &*model : nullptr, summary);
  summary.worker_restarts = input.worker_restarts;
  summary.server_restarts = input.server_restarts;
  // A run that failed or was stopped early may have no model.
  const bool none = absl::IsNotFound(model.status()) && summary.state != "finished";
  if (!evaluated.ok() && !none) FailAlso(evaluated, summary);
  const absl::Status written = WriteSummary(input.run_dir, summary);
  if (!written.ok()) FailAlso(Annotate(written, "writing the summary"), summary);
  const absl::Status report = WriteReport(input.run_dir, input.job, history, summary);
  if (!report.ok()) {
    summary.warnings.push_back(absl::StrCat("no report: ", report.message()));
  }
  return summary;
}

int ExitCodeOf(const RunSummary& summary, const std::optional<v1::CoordinatorRecord>& end,
               int failure) {
  if (summary.state == "finished") return kExitDone;
  if (summary.state != "stopped" && end && end->outcome() == v1::JOB_FAILED) {
    return end->permanent() ? kExitPermanent : kExitTemporary;
  }
  if (summary.state != "stopped") return failure;
  return summary.clock.has_value() ? kExitStopped : kExitTemporary;
}

absl::Status WriteReport(const std::string& run_dir, const v1::TrainingJob& given,
                         const RunHistory& history, const RunSummary& summary) {
  const v1::TrainingJob job = WithBroughtUpdate(given, run_dir);
  ReportInput input{.summary = summary,
                    .history = history,
                    .algorithm = DescribeAlgorithm(job),
                    .checkpoints = ListCheckpoints(run_dir),
                    .job_yaml = ToYaml(job),
                    .curves_svg = CurvesSvg(history, summary.name)};
  RETURN_IF_ERROR(WriteStored(run_dir + "/" + kCurvesFile, input.curves_svg));
  return WriteStored(run_dir + "/" + kReportFile, ReportHtml(input));
}

std::string DescribeOutcome(const RunSummary& summary, const RunPlace& place,
                            const std::string& data, const std::vector<std::string>& command) {
  std::string text = absl::StrCat(
      summary.state, ": ", Thousands(summary.steps), " steps of ", summary.workers,
      summary.workers == 1 ? " worker" : " workers", " in ", Lasting(summary.seconds), "  (",
      Thousands(static_cast<uint64_t>(summary.samples_per_second)), " samples/s, ",
      Dropped(summary), Overflowed(summary), Replaced(summary), "staleness at most ",
      summary.max_staleness, ", ", Restarts(summary), WentBack(summary), ")\n");
  if (summary.state == "finished" && !summary.message.empty()) {
    absl::StrAppend(&text, summary.message, "\n");
  }
  absl::StrAppend(&text, Devices(summary));
  if (summary.test_accuracy.has_value()) {
    absl::StrAppend(&text, "test accuracy ",
                    AccuracyInWords(*summary.test_accuracy, summary.test_top5_accuracy), "  (loss ",
                    LossInWords(*summary.test_loss), PerplexityInWords(summary.test_perplexity),
                    ")\n");
  } else if (summary.test_loss.has_value()) {
    absl::StrAppend(&text, "test loss ", LossInWords(*summary.test_loss),
                    RegressionInWords(summary.test_mae, summary.test_r2), "\n");
  }
  if (!summary.why_not_learned.empty()) {
    absl::StrAppend(&text, "WARNING: ", summary.why_not_learned, "\n");
  }
  absl::StrAppend(&text, Places(place));
  if (summary.state != "finished" && summary.clock.has_value()) {
    absl::StrAppend(&text, "To go on: leeway train --resume --run-dir ", place.location,
                    data.empty() ? "" : " --data " + data,
                    command.empty() ? "" : " -- " + absl::StrJoin(command, " "), "\n");
  }
  return text;
}

}  // namespace leeway
