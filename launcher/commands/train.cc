// leeway train: runs a job from its file to its report, on this machine or on hosts reached by ssh.
//   1. It loads the job, finds the data, makes or reuses the run folder and writes the resolved job
//   there.
//   2. RunProcesses starts the processes and watches them until they end.
//   3. FinishRun exports and evaluates the model, and writes the summary and the report.
#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>

#include <spdlog/spdlog.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/command_line/security_flags.h"
#include "common/exit_code.h"
#include "common/files/files.h"
#include "common/files/private_files.h"
#include "common/log.h"
#include "common/loopback.h"
#include "common/memory.h"
#include "common/process/process.h"
#include "common/room.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "config/external.h"
#include "config/job.h"
#include "config/length.h"
#include "config/topology.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"
#include "launcher/finish/finish.h"
#include "launcher/finish/outcome_text.h"
#include "launcher/plan/algorithm.h"
#include "launcher/plan/checked_job.h"
#include "launcher/plan/data_files.h"
#include "launcher/start/host_run.h"
#include "launcher/start/run_processes.h"
#include "launcher/start/worker_command.h"
#include "launcher/supervision/find_program.h"
#include "launcher/supervision/restart_policy.h"
#include "run/run_folder.h"
#include "run/run_so_far.h"
#include "server/checkpoint/checkpoint_dir.h"

namespace leeway {
namespace {

struct TrainOptions {
  JobFlags job;
  std::string run_dir;
  std::string local_dir;
  bool resume = false;
  double restart_window = Seconds(RestartPolicy::Options().window);
  SecurityFlags security;
  HostFlags hosts;
  // The program of an external job's workers, with its arguments.
  std::vector<std::string> command;
};

absl::StatusOr<RunFolder> TakeRunFolder(const TrainOptions& options, const v1::TrainingJob& job) {
  const std::string run_dir = options.run_dir.empty()
                                  ? DefaultRunFolder(job.metadata().name(), std::time(nullptr))
                                  : options.run_dir;
  ASSIGN_OR_RETURN(const RunPlace place, PlaceOfRun(run_dir, options.local_dir));
  return options.resume ? RunFolder::Open(place) : RunFolder::Create(place);
}

// Returns the sum of both counts for each process in `now`.
std::vector<uint32_t> Sum(std::vector<uint32_t> before, const std::vector<uint32_t>& now) {
  before.resize(now.size());
  for (size_t i = 0; i < now.size(); ++i) before[i] += now[i];
  return before;
}

// Does step 3 and returns the exit code. `failure` is the argument of ExitCodeOf.
int Finish(const PlannedRun& plan, const RunPlace& place, const FinishInput& finish, int failure) {
  const RunSummary summary = FinishRun(finish);
  spdlog::info("{}{}{}", summary.state, summary.message.empty() ? "" : ": ", summary.message);
  for (const std::string& warning : summary.warnings) std::cerr << "leeway: " << warning << "\n";
  std::cout << DescribeOutcome(summary, place, plan.data_given ? plan.data_dir : "", plan.command)
            << std::flush;
  if (summary.state == "failed") std::cerr << "leeway: the job failed: " << summary.message << "\n";
  const int code = ExitCodeOf(summary, finish.end, failure);
  if (summary.state == "stopped" && code != kExitStopped) {
    std::cerr << "leeway: the run was stopped before its first checkpoint, so it begins again when "
                 "it is started again\n";
  }
  return code;
}

// Does steps 2 and 3, and returns the exit code.
absl::StatusOr<int> TrainIn(const PlannedRun& plan, const RunFolder& run,
                            std::unique_ptr<SignalSource> signals) {
  FinishInput finish;
  finish.job = plan.job;
  finish.run_dir = run.location();
  finish.data_dir = plan.data_dir;
  finish.worker_restarts = plan.so_far.worker_restarts;
  finish.server_restarts = plan.so_far.server_restarts;
  int failure = kExitTemporary;
  if (plan.so_far.finished) {
    std::cout << "The run has finished already: nothing to train.\n";
    finish.end.emplace().set_outcome(v1::JOB_FINISHED);
    finish.end->set_message(plan.so_far.ended_early);
  } else {
    ASSIGN_OR_RETURN(Ran ran, RunProcesses(plan, run, *signals));
    RETURN_IF_ERROR(Annotate(run.CheckThere(), "the job failed: nothing of the run is left"));
    finish.end = std::move(ran.end);
    finish.failure = std::move(ran.outcome.failure);
    failure = ran.outcome.exit_code;
    finish.stop_requested = ran.outcome.stop_requested;
    finish.worker_restarts = Sum(plan.so_far.worker_restarts, ran.outcome.worker_restarts);
    finish.server_restarts = Sum(plan.so_far.server_restarts, ran.outcome.server_restarts);
  }
  // From here on Ctrl-C ends the launcher at once, like any other program.
  signals.reset();
  return Finish(plan, run.place(), finish, failure);
}

bool HasCheckpoint(const std::string& run_dir) {
  const auto clocks = CheckpointClocks(run_dir);
  return clocks.ok() && !clocks->empty();
}

absl::Status CheckIsBeside(const char* name) {
  const std::string program = ProgramFolder() + "/" + name;
  if (access(program.c_str(), X_OK) == 0) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("the program ", program,
                                          " cannot be started: ", std::strerror(errno),
                                          "; install it in the same folder as leeway"));
}

// Checks everything that could keep the job from running, as `leeway plan` does. For a job that
// cannot run, no process starts and no folder is made.
absl::Status CheckBeforeStart(const TrainOptions& options, const JobPlaces& places,
                              PlannedRun& plan) {
  RETURN_IF_ERROR(CheckIsBeside("leeway-server"));
  if (IsExternal(plan.job)) {
    plan.command = options.command;
    // With --hosts each host finds the program by itself.
    if (options.hosts.hosts.empty()) {
      ASSIGN_OR_RETURN(plan.command, FindCommand(options.command));
    }
    plan.steps_per_epoch = ExternalStepsPerEpoch(plan.job);
    return places.Place(CheckRule(plan.job));
  }
  RETURN_IF_ERROR(CheckIsBeside("leeway-worker"));
  ASSIGN_OR_RETURN(const CheckedJob checked, CheckJob(plan.job, places, plan.data_dir));
  plan.steps_per_epoch = checked.steps_per_epoch;
  std::cerr << WarningsOf(plan.job, checked);
  // A run that goes on from a checkpoint does not read the initial weights again.
  if (options.resume && HasCheckpoint(options.run_dir)) return absl::OkStatus();
  return CheckInitial(plan.job, places, plan.data_dir, *checked.model);
}

// Removes the files that a run without a checkpoint has left, and prints their names.
absl::Status BeginAnew(const RunFolder& run) {
  ASSIGN_OR_RETURN(const std::vector<std::string> replaced, run.Replaced());
  if (replaced.empty()) return absl::OkStatus();
  std::cout << "The run in " << run.location()
            << " left no checkpoint. It is replaced: " << absl::StrJoin(replaced, ", ") << "\n";
  return run.Remove(replaced);
}

// Returns the least threads, memory and files that the launcher and the processes of a small job
// need. With less, the job would begin and then hang.
Room RoomFor(const PlannedRun& plan) {
  const uint32_t servers = ServerProcessesOf(plan.job), workers = plan.job.workers().count();
  Room room{.threads = 10, .files = 20 + 2 * (servers + workers)};
  if (plan.hosts == nullptr) {
    room.others = 14 * ServersOf(plan.job) + (plan.command.empty() ? 10 : 2) * workers;
  }
  return room;
}

// Makes all new files private if the job is private or Leeway chooses the run folder. Call this
// before the run folder is made, and before servers and workers start, because they inherit the
// setting.
absl::Status KeepPrivate(const TrainOptions& options, const v1::TrainingJob& job) {
  if (!job.metadata().private_() && !options.run_dir.empty()) return absl::OkStatus();
  // Make the folder of all runs first, so that it gets the usual permissions.
  if (options.run_dir.empty()) RETURN_IF_ERROR(MakeFolders(kRunsFolder));
  KeepFilesPrivate();
  return absl::OkStatus();
}

// Completes the options with the location of the run. If no job file is given, uses the run's own.
absl::Status FindRun(TrainOptions& options) {
  if (options.resume && options.run_dir.empty()) {
    return absl::InvalidArgumentError(
        "--resume needs --run-dir, the folder of the run to continue");
  }
  if (!options.run_dir.empty()) {
    ASSIGN_OR_RETURN(const RunPlace place, PlaceOfRun(options.run_dir, options.local_dir));
    options.run_dir = place.location;
    RETURN_IF_ERROR(CheckStore(place));
  }
  if (!options.job.job_file.empty()) return absl::OkStatus();
  if (!options.resume) return absl::InvalidArgumentError("no job file given");
  RETURN_IF_ERROR(RunFolder::CheckHoldsRun(options.run_dir));
  options.job.job_file = options.run_dir + "/" + kJobFile;
  return absl::OkStatus();
}

// Loads the job, and checks that it can run here.
absl::Status MakePlan(const TrainOptions& options, PlannedRun& plan) {
  ASSIGN_OR_RETURN(PlacedJob placed, LoadJobWithOptions(options.job));
  plan.job = std::move(placed.job);
  RETURN_IF_ERROR(CheckCommand(plan.job, options.command));
  ASSIGN_OR_RETURN(plan.data_dir, FindDataFolder(options.job.data, options.job.job_file, plan.job));
  plan.data_given = !options.job.data.empty();
  plan.restart_window = options.restart_window;
  plan.security = options.security;
  RETURN_IF_ERROR(CheckBeforeStart(options, placed.places, plan));
  ASSIGN_OR_RETURN(plan.hosts, ConnectHosts(options.hosts, plan.job, plan.security));
  plan.insecure = options.hosts.insecure && plan.hosts != nullptr;
  RETURN_IF_ERROR(Annotate(CheckRoom(RoomFor(plan)), "the job does not fit here"));
  if (plan.hosts == nullptr) RETURN_IF_ERROR(CheckLoopback(LoopbackHost() + ":0"));
  return KeepPrivate(options, plan.job);
}

absl::StatusOr<int> Train(TrainOptions options) {
  // Signals are set up before any thread exists.
  ASSIGN_OR_RETURN(std::unique_ptr<SignalSource> signals, SignalSource::Create());
  TameMalloc();
  RETURN_IF_ERROR(FindRun(options));
  PlannedRun plan;
  RETURN_IF_ERROR(MakePlan(options, plan));
  const absl::StatusOr<RunFolder> taken = TakeRunFolder(options, plan.job);
  if (absl::IsAborted(taken.status())) {
    ShowResult(taken.status());
    return kExitReplaced;
  }
  RETURN_IF_ERROR(taken.status());
  const RunFolder& run = *taken;
  if (options.resume) {
    ASSIGN_OR_RETURN(plan.so_far, ReadRunSoFar(run, plan.job, plan.steps_per_epoch));
  }
  if (!plan.so_far.goes_on) RETURN_IF_ERROR(BeginAnew(run));
  RETURN_IF_ERROR(SetUpLog({.role = "launcher", .file = run.Here(kLauncherLog)}));
  RETURN_IF_ERROR(WriteStored(run.Lasting(kJobFile), ToYaml(plan.job)));
  spdlog::info("job {} from {}, data in {}, {}", plan.job.metadata().name(), options.job.job_file,
               plan.data_dir, DescribeAlgorithm(plan.job));
  return TrainIn(plan, run, std::move(signals));
}

void AddHostOptions(CLI::App& command, HostFlags& flags) {
  constexpr char kGroup[] = "Several machines";
  CLI::Option* hosts =
      command
          .add_option("--hosts", flags.hosts,
                      "Run the job's processes on these hosts by ssh, with WORKERS workers on "
                      "each. Write NAME=ADDRESS:WORKERS if the other hosts reach a host at another "
                      "address. All hosts must see the run folder and the data at the same paths")
          ->type_name("NAME:WORKERS,...")
          ->group(kGroup);
  command.add_option("--ssh", flags.ssh, "The command that reaches a host")
      ->type_name("COMMAND")
      ->needs(hosts)
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--remote-bin", flags.remote_bin,
                  "Folder with the programs on each host; default: the host's PATH")
      ->type_name("DIR")
      ->needs(hosts)
      ->group(kGroup);
  command
      .add_flag("--insecure", flags.insecure,
                "With --hosts: use no mutual TLS, in a network that admits nobody else")
      ->envname(kInsecure)
      ->group(kGroup);
}

}  // namespace

void AddTrainCommand(CLI::App& app, int& exit_code, std::vector<std::string> command_of_workers) {
  auto options = std::make_shared<TrainOptions>();
  options->command = std::move(command_of_workers);
  CLI::App* command =
      app.add_subcommand("train", "Train a job's model, on this machine or on several");
  command->add_option("JOB", options->job.job_file,
                      "The job file; default with --resume: the file in the run folder");
  AddSetOption(*command, options->job);
  AddDataOption(*command, options->job.data);
  command
      ->add_option("--run-dir", options->run_dir,
                   "Folder for everything that the run writes, or s3://BUCKET/PREFIX; default "
                   "runs/NAME-TIME")
      ->type_name("DIR");
  command
      ->add_option("--local-dir", options->local_dir,
                   "Folder on this machine for the logs of a run in an object store; default "
                   "runs/s3/BUCKET/PREFIX")
      ->type_name("DIR");
  command->add_flag("--resume", options->resume,
                    "Go on with the run in --run-dir from its newest checkpoint");
  command
      ->add_option("--restart-window", options->restart_window,
                   "Restart a process at most max_restarts times within SECONDS")
      ->type_name("SECONDS")
      ->check(NumberIn(1, 1e9))
      ->capture_default_str();
  AddHostOptions(*command, options->hosts);
  DeclareRunSecurity(*command, options->security);
  command->footer(
      "Workers of an external job (model.type: external) run a program of your own:\n"
      "  leeway train JOB [OPTIONS] -- COMMAND [ARGUMENTS]");
  command->callback([options, &exit_code] {
    const absl::StatusOr<int> result = Train(*options);
    exit_code = result.ok() ? *result : ShowResult(result.status());
  });
}

}  // namespace leeway
