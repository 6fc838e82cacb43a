// leeway train: a job from its file to its report, on this machine.
//   1. load the job, find the data, make (or take up) the run folder and write the resolved job
//   there
//   2. let the Supervisor start the processes and watch them to their end
//   3. let FinishRun export and evaluate the model and write summary and report
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>

#include <spdlog/spdlog.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/files.h"
#include "common/log.h"
#include "common/status.h"
#include "config/job.h"
#include "deploy/base/process.h"
#include "deploy/launcher/command_support.h"
#include "deploy/launcher/commands.h"
#include "deploy/launcher/data_check.h"
#include "deploy/launcher/display.h"
#include "deploy/launcher/finish.h"
#include "deploy/launcher/restart_policy.h"
#include "deploy/launcher/run_folder.h"
#include "deploy/launcher/supervisor.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/manifest.h"

namespace leeway {
namespace {

constexpr uint64_t kJobBytesMax = 16 << 20;

struct TrainOptions {
  JobOptions job;
  std::string run_dir;
  bool resume = false;
};

// What is decided before anything is started.
struct Plan {
  v1::TrainingJob job;
  std::string data_dir;
  // By --data.
  bool data_given = false;
  // There is a checkpoint to go on from.
  bool resume = false;
  // The run has ended already, as it would again: there is nothing to train.
  bool finished = false;
  // How often it has ended.
  uint64_t ends = 0;
  // Of the run so far, by rank, and by index.
  std::vector<uint32_t> worker_restarts;
  std::vector<uint32_t> server_restarts;
};

// Lines of `after` that `before` has not, and the other way round: what a person changed between
// two starts.
std::string Changes(const std::string& before, const std::string& after) {
  const std::vector<std::string> old_lines = absl::StrSplit(before, '\n');
  const std::vector<std::string> new_lines = absl::StrSplit(after, '\n');
  const std::set<std::string> old_set(old_lines.begin(), old_lines.end());
  const std::set<std::string> new_set(new_lines.begin(), new_lines.end());
  std::string changes;
  for (const std::string& line : old_lines) {
    if (!new_set.contains(line)) absl::StrAppend(&changes, "  - ", line, "\n");
  }
  for (const std::string& line : new_lines) {
    if (!old_set.contains(line)) absl::StrAppend(&changes, "  + ", line, "\n");
  }
  return changes;
}

// Compares with the run's own job and looks for its newest checkpoint.
absl::Status PlanResume(const RunFolder& run, Plan& plan) {
  ASSIGN_OR_RETURN(std::string before, ReadFile(run / kJobFile, kJobBytesMax));
  ASSIGN_OR_RETURN(const CheckpointSearch search, FindNewestCheckpoint(run.path()));
  for (const std::string& warning : search.warnings) std::cerr << "leeway: " << warning << "\n";
  plan.resume = search.newest.has_value();
  // job.yaml may be of a start that was stopped before it trained.
  if (plan.resume) before = ToYaml(JobSoFar(search.newest->manifest, plan.job));
  const std::string after = ToYaml(plan.job);
  if (before != after) {
    std::cout << "Settings that differ from the run so far:\n" << Changes(before, after);
  }
  if (plan.resume) {
    RETURN_IF_ERROR(Annotate(CheckGoesOn(search.newest->manifest, plan.job), "--resume"));
  }
  RETURN_IF_ERROR(Annotate(CheckNothingLost(run.path(), search), "--resume"));
  if (!plan.resume) std::cout << "No complete checkpoint yet: the run begins anew.\n";
  ASSIGN_OR_RETURN(const RunHistory history, ReadHistory(run / kMetricsFile));
  if (const auto summary = ReadSummary(run.path()); summary.ok()) {
    plan.worker_restarts = summary->worker_restarts;
    plan.server_restarts = summary->server_restarts;
  }
  plan.ends = history.ends;
  plan.finished = plan.resume && history.state == "finished" && before == after;
  return absl::OkStatus();
}

absl::StatusOr<RunFolder> TakeRunFolder(const TrainOptions& options, const v1::TrainingJob& job) {
  if (options.resume) return RunFolder::Open(options.run_dir);
  if (!options.run_dir.empty()) return RunFolder::Create(options.run_dir);
  return RunFolder::Create(DefaultRunFolder(job.metadata().name(), std::time(nullptr)));
}

absl::StatusOr<RunOutcome> RunProcesses(const Plan& plan, const RunFolder& run,
                                        SignalSource& signals) {
  const bool terminal = OutputIsTerminal();
  const std::unique_ptr<RunObserver> display = MakeDisplay(terminal);
  Supervisor supervisor({.program_dir = ProgramFolder(),
                         .run_dir = run.path(),
                         .data_dir = plan.data_dir,
                         .resume = plan.resume,
                         .servers = plan.job.servers().count(),
                         .workers = plan.job.workers().count(),
                         .restarts = {.server = plan.job.servers().max_restarts(),
                                      .worker = plan.job.workers().max_restarts(),
                                      .without_worker = plan.job.workers().on_worker_loss() ==
                                                        v1::WORKER_LOSS_CONTINUE},
                         .start_seconds = plan.job.limits().start_seconds(),
                         .status_every = StatusInterval(terminal)},
                        signals, *display);
  absl::StatusOr<RunOutcome> outcome = supervisor.Run();
  std::error_code error;
  std::filesystem::remove(run / kCoordinatorFile, error);
  return outcome;
}

// By process; of the processes that there are now.
std::vector<uint32_t> Sum(std::vector<uint32_t> before, const std::vector<uint32_t>& now) {
  before.resize(now.size());
  for (size_t i = 0; i < now.size(); ++i) before[i] += now[i];
  return before;
}

// Steps 2 and 3; the exit code.
absl::StatusOr<int> TrainIn(const Plan& plan, const RunFolder& run,
                            std::unique_ptr<SignalSource> signals) {
  FinishInput finish;
  finish.job = plan.job;
  finish.run_dir = run.path();
  finish.data_dir = plan.data_dir;
  finish.worker_restarts = plan.worker_restarts;
  finish.server_restarts = plan.server_restarts;
  if (plan.finished) {
    std::cout << "The run has finished already: nothing to train.\n";
  } else {
    ASSIGN_OR_RETURN(RunOutcome outcome, RunProcesses(plan, run, *signals));
    finish.ends_before = plan.ends;
    finish.failure = std::move(outcome.failure);
    finish.stop_requested = outcome.stop_requested;
    finish.worker_restarts = Sum(plan.worker_restarts, outcome.worker_restarts);
    finish.server_restarts = Sum(plan.server_restarts, outcome.server_restarts);
  }
  // From here on Ctrl-C ends the launcher as it ends any program.
  signals.reset();
  ASSIGN_OR_RETURN(const RunSummary summary, FinishRun(finish));
  spdlog::info("{}{}{}", summary.state, summary.message.empty() ? "" : ": ", summary.message);
  std::cout << DescribeOutcome(summary, run.path(), plan.data_given ? plan.data_dir : "")
            << std::flush;
  if (summary.state != "failed") return kExitDone;
  std::cerr << "leeway: the job failed: " << summary.message << "\n";
  return 1;
}

absl::StatusOr<int> Train(TrainOptions options) {
  // Before any thread is there.
  ASSIGN_OR_RETURN(std::unique_ptr<SignalSource> signals, SignalSource::Create());
  if (options.resume && options.run_dir.empty()) {
    return absl::InvalidArgumentError("--resume needs --run-dir, the run to go on with");
  }
  if (options.job.job_file.empty()) {
    if (!options.resume) return absl::InvalidArgumentError("no job file given");
    RETURN_IF_ERROR(RunFolder::CheckHoldsRun(options.run_dir));
    options.job.job_file = options.run_dir + "/" + kJobFile;
  }
  Plan plan;
  ASSIGN_OR_RETURN(plan.job, LoadJobWithOptions(options.job));
  ASSIGN_OR_RETURN(plan.data_dir, FindDataFolder(options.job.data, options.job.job_file));
  plan.data_given = !options.job.data.empty();
  RETURN_IF_ERROR(CheckDataFiles(plan.job, plan.data_dir));
  ASSIGN_OR_RETURN(const RunFolder run, TakeRunFolder(options, plan.job));
  RETURN_IF_ERROR(SetUpLog({.role = "launcher", .file = run / kLauncherLog}));
  if (options.resume) RETURN_IF_ERROR(PlanResume(run, plan));
  RETURN_IF_ERROR(WriteFileAtomically(run / kJobFile, ToYaml(plan.job)));
  spdlog::info("job {} from {}, data in {}, {}", plan.job.metadata().name(), options.job.job_file,
               plan.data_dir, DescribeAlgorithm(plan.job));
  return TrainIn(plan, run, std::move(signals));
}

}  // namespace

void AddTrainCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* command = app.add_subcommand("train", "Train a job's model on this machine");
  command->add_option("JOB", options->job.job_file,
                      "The job file; with --resume by default the run's own");
  AddSetOption(*command, options->job);
  AddDataOption(*command, options->job.data);
  command
      ->add_option("--run-dir", options->run_dir,
                   "Folder for all that the run writes; default runs/NAME-TIME")
      ->type_name("DIR");
  command->add_flag("--resume", options->resume,
                    "Go on with the run in --run-dir from its newest checkpoint");
  command->callback([options, &exit_code] {
    const absl::StatusOr<int> result = Train(*options);
    exit_code = result.ok() ? *result : ShowResult(result.status());
  });
}

}  // namespace leeway
