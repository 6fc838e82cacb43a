#include "launcher/finish/finish.h"

#include "absl/strings/str_cat.h"
#include "common/exit_code.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "config/external.h"
#include "config/job.h"
#include "launcher/finish/learning.h"
#include "launcher/finish/test_result.h"
#include "launcher/plan/algorithm.h"
#include "launcher/report/curves_svg.h"
#include "launcher/report/report_html.h"
#include "launcher/supervision/worsening.h"
#include "run/outcome.h"
#include "run/run_folder.h"
#include "server/checkpoint/coordinator_record.h"

namespace leeway {
namespace {

// Sets state and message. The coordinator's record takes precedence: if the record says that the
// job has finished, it has, even if processes of this launcher ended earlier. The record also says
// why a job failed. If the launcher gave up and asked the coordinator to stop, the job has failed,
// too.
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

// Adds a warning if the last evaluation, which is that of the trained model, is much worse than the
// best evaluation.
void AddWorsening(const RunHistory& history, RunSummary& summary) {
  if (!summary.test) return;
  std::vector<v1::EvaluationMetrics> evaluations = history.evaluations;
  evaluations.push_back(summary.test->metrics);
  evaluations.back().set_clock(summary.model.clock.value_or(0));
  const std::string was = MuchWorse(evaluations);
  if (was.empty()) return;
  summary.warnings.push_back(
      absl::StrCat("this run became much worse during training: ", was,
                   "; lower the learning rate, give its schedule a warm_up, or use "
                   "evaluation.early_stop"));
}

absl::Status AddTestResult(const FinishInput& input, const TrainedModel& model,
                           const RunHistory& history, RunSummary& summary) {
  std::optional<Tested> tested;
  if (IsExternal(input.job)) {
    // Only the job's program can evaluate its model, so this uses the last evaluation that the
    // program reported, if any.
    AddLastEvaluation(history, summary);
  } else {
    const auto found = EvaluateModel(input.job, input.data_dir, model.Evaluated());
    RETURN_IF_ERROR(Annotate(found.status(), "evaluating the trained model"));
    if (found->has_value()) {
      summary.test = (*found)->result;
      tested = TestedBy(**found);
    }
  }
  summary.learning = JudgeLearning(tested, model.weights.span());
  return absl::OkStatus();
}

// Returns the job with the update rule that a worker supplied, if there is one.
v1::TrainingJob WithBroughtUpdate(v1::TrainingJob job, const std::string& run_dir) {
  if (!BringsUpdate(job)) return job;
  const auto record = ReadCoordinatorRecord(run_dir);
  const bool known = record.ok() && record->has_value() && (*record)->has_update();
  if (known) *job.mutable_update() = (*record)->update();
  return job;
}

}  // namespace

RunSummary FinishRun(const FinishInput& input) {
  RunSummary summary;
  // The model is exported first, because it is worth more than the summary and the report.
  const absl::StatusOr<TrainedModel> model = ExportNewest(input.run_dir, summary);
  const RunHistory history = ReadHistory(input.run_dir + "/" + kMetricsFile);
  const absl::Status evaluated =
      model.ok() ? AddTestResult(input, *model, history, summary) : model.status();
  AddWorsening(history, summary);
  SetOutcome(input, summary);
  if (input.end)
    summary.by_rank.devices = {input.end->devices().begin(), input.end->devices().end()};
  // A failed run may have trained beyond its newest checkpoint, so its figures do not come from the
  // checkpoint. This is also true if newer checkpoints are damaged.
  const bool whole = model.ok() && model->passed_over.empty() && summary.state != "failed";
  AddRun(input.job, input.run_dir, history, whole ? &*model : nullptr, summary);
  summary.by_rank.restarts = input.worker_restarts;
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
  return summary.model.clock.has_value() ? kExitStopped : kExitTemporary;
}

absl::Status WriteReport(const std::string& run_dir, const v1::TrainingJob& given,
                         const RunHistory& history, const RunSummary& summary) {
  const v1::TrainingJob job = WithBroughtUpdate(given, run_dir);
  ReportInput input{.summary = summary,
                    .history = history,
                    .algorithm = DescribeAlgorithm(job),
                    .checkpoints = ListCheckpoints(run_dir),
                    .job_yaml = ToYaml(job),
                    .curves_svg = CurvesSvg(history, summary.job.name)};
  RETURN_IF_ERROR(WriteStored(run_dir + "/" + kCurvesFile, input.curves_svg));
  return WriteStored(run_dir + "/" + kReportFile, ReportHtml(input));
}

}  // namespace leeway
