#include "launcher/start/run_processes.h"

#include <filesystem>
#include <utility>

#include "absl/strings/strip.h"
#include "common/environment.h"
#include "common/machine.h"
#include "common/process/process.h"
#include "common/status.h"
#include "config/topology.h"
#include "launcher/plan/data_files.h"
#include "launcher/start/host_run.h"
#include "launcher/start/run_keys.h"
#include "launcher/start/worker_command.h"
#include "launcher/supervision/display.h"
#include "launcher/supervision/local_hosts.h"
#include "server/checkpoint/coordinator_record.h"
#include "worker/device/placement.h"

namespace leeway {
namespace {

using Record = absl::StatusOr<std::optional<v1::CoordinatorRecord>>;

// Returns how the coordinator ended the job after its record was `before`. Returns nothing if it
// has not ended the job since then.
std::optional<v1::CoordinatorRecord> EndSince(const Record& before, const Record& now) {
  if (!now.ok() || !now->has_value() || (*now)->outcome() == v1::JOB_STARTING) return std::nullopt;
  const bool old = before.ok() && before->has_value() && (*before)->job_id() == (*now)->job_id() &&
                   (*before)->outcome() == (*now)->outcome();
  return old ? std::nullopt : *now;
}

// Returns the failure that the coordinator reported in its status. The coordinator may be unable to
// record the failure, for example if the disk is full.
std::optional<v1::CoordinatorRecord> EndAsTold(const std::optional<v1::JobStatus>& status) {
  if (!status || status->state() != v1::JOB_FAILED) return std::nullopt;
  v1::CoordinatorRecord told;
  told.set_outcome(v1::JOB_FAILED);
  told.set_message(std::string(absl::StripPrefix(status->message(), "the job has failed: ")));
  return told;
}

// Returns the processors on which each worker is to run. The result is empty in two cases: a quota
// grants this process less than all its processors, or the workers may use a GPU. With a GPU, a
// worker itself chooses processors near the GPU (PinNear).
std::vector<std::string> PlacesOf(const v1::Workers& workers) {
  const Processors allowed = AllowedProcessors();
  std::vector<std::string> places;
  if (workers.device() != "cpu" || MachineProcessors() < allowed.size()) return places;
  for (const Processors& place : PlaceWorkers(workers.count(), workers.threads(), allowed)) {
    places.push_back(ProcessorsText(place));
  }
  return places;
}

// Returns the variables of this process's environment that specify how to reach an object store,
// with their values, for processes on other machines. Omits variables that name files, because the
// files do not exist on other machines.
Environment StoreEnvironment() {
  Environment environment;
  for (const char* name :
       {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION",
        "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "LEEWAY_S3_PART_BYTES",
        "LEEWAY_S3_RETRY_SECONDS", "LEEWAY_S3_STALL_SECONDS", "LEEWAY_DATA_CACHE"}) {
    if (const auto value = LookUpEnvironment(name)) environment.emplace_back(name, *value);
  }
  return environment;
}

void Append(Environment more, Environment& environment) {
  for (auto& variable : more) environment.push_back(std::move(variable));
}

// Returns the environment of processes that listen.
Environment ListenerEnvironment(const PlannedRun& plan, Environment environment) {
  if (plan.insecure) environment.emplace_back(kInsecure, "1");
  return environment;
}

Environment ServersEnvironment(const PlannedRun& plan, const RunKeys& keys, const RunFolder& run) {
  Environment environment = ListenerEnvironment(plan, keys.ForServers());
  if (plan.hosts != nullptr && run.place().in_store()) Append(StoreEnvironment(), environment);
  return environment;
}

Environment WorkerEnvironment(const PlannedRun& plan, const RunKeys& keys, const RunFolder& run) {
  Environment environment =
      WorkersHoldBlocks(plan.job) ? ListenerEnvironment(plan, keys.ForPeers()) : keys.ForWorkers();
  if (plan.hosts != nullptr && ReadsStore(plan.job, plan.data_dir)) {
    Append(StoreEnvironment(), environment);
  }
  if (plan.command.empty()) return environment;
  const std::string data = plan.data_given ? plan.data_dir : "";
  Append(CommandEnvironment(plan.job, run.place().here, data), environment);
  return environment;
}

SupervisorSpec SpecOf(const PlannedRun& plan, const RunFolder& run, const RunKeys& keys) {
  const v1::TrainingJob& job = plan.job;
  return {
      .run_dir = run.location(),
      .local_dir = run.place().here,
      .data_dir = plan.data_dir,
      .server_environment = ServersEnvironment(plan, keys, run),
      .worker_environment = WorkerEnvironment(plan, keys, run),
      .worker_command = plan.command,
      .worker_processors =
          plan.hosts == nullptr ? PlacesOf(job.workers()) : std::vector<std::string>(),
      .resume = plan.so_far.goes_on,
      .servers = ServerProcessesOf(job),
      .workers = job.workers().count(),
      .workers_serve = WorkersHoldBlocks(job),
      .restarts = {.server = job.servers().max_restarts(),
                   .worker = job.workers().max_restarts(),
                   .window = FromSeconds(plan.restart_window),
                   .without_worker = job.workers().on_worker_loss() == v1::WORKER_LOSS_CONTINUE},
      .start_seconds = job.limits().start_seconds(),
      .lease_seconds = job.limits().lease_seconds()};
}

}  // namespace

absl::StatusOr<Ran> RunProcesses(const PlannedRun& plan, const RunFolder& run,
                                 SignalSource& signals) {
  const Record before = ReadCoordinatorRecord(run.location());
  const auto end = [&] { return EndSince(before, ReadCoordinatorRecord(run.location())); };
  ASSIGN_OR_RETURN(const std::unique_ptr<RunKeys> keys,
                   RunKeys::Make(plan.security, plan.job.security(), run.place().here));
  keys->Adopt();
  const bool terminal = OutputIsTerminal();
  const std::unique_ptr<RunObserver> display = MakeDisplay(terminal);
  LocalHosts here(ProgramFolder());
  if (plan.hosts != nullptr) {
    RETURN_IF_ERROR(LeaveHosts(*plan.hosts, ServerProcessesOf(plan.job), run.place()));
  }
  SupervisorSpec spec = SpecOf(plan, run, *keys);
  spec.status_every = StatusInterval(terminal);
  spec.over_on_record = [&] { return end().has_value(); };
  Supervisor supervisor(std::move(spec),
                        plan.hosts == nullptr ? static_cast<JobHosts&>(here) : *plan.hosts, signals,
                        *display);
  absl::StatusOr<RunOutcome> outcome = supervisor.Run();
  std::error_code error;
  std::filesystem::remove(run.Here(kCoordinatorFile), error);
  std::filesystem::remove(run.Here(kHostsFile), error);
  RETURN_IF_ERROR(outcome.status());
  std::optional<v1::CoordinatorRecord> ended = end();
  if (!ended) ended = EndAsTold(outcome->status);
  return Ran{*std::move(outcome), std::move(ended)};
}

}  // namespace leeway
