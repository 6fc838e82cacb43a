#include "launcher/kubernetes/job_run.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/job_key.h"
#include "common/object_store/address.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "common/utf8.h"
#include "config/device.h"
#include "config/external.h"
#include "config/topology.h"
#include "launcher/kubernetes/names.h"
#include "launcher/kubernetes/pod_sizes.h"
#include "launcher/plan/checked_job.h"
#include "launcher/plan/data_files.h"
#include "launcher/plan/job_needs.h"
#include "launcher/start/worker_command.h"
#include "worker/data/data_folder.h"
#include "worker/data/sources/job_files.h"

namespace leeway {
namespace {

// The largest total size of the program's files. A ConfigMap may hold 1 MiB. The rest is for its
// other fields.
constexpr uint64_t kFileBytesMax = 900 << 10;

absl::Status CheckText(const std::string& file, const std::string& text) {
  for (std::string_view rest = text; !rest.empty();) {
    const auto character = FirstCharacter(rest);
    if (!character.has_value() || character->code == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--file ", file, ": is not UTF-8 text; put it into the image"));
    }
    rest.remove_prefix(character->bytes);
  }
  return absl::OkStatus();
}

// Reads the program's files. Returns their contents by file name.
absl::StatusOr<std::map<std::string, std::string>> ReadProgramFiles(
    const std::vector<std::string>& files) {
  std::map<std::string, std::string> found;
  uint64_t bytes = 0;
  for (const std::string& file : files) {
    const std::string name = file.substr(file.rfind('/') + 1);
    RETURN_IF_ERROR(CheckFileName("--file", name));
    ASSIGN_OR_RETURN(std::string text, ReadFile(file, kFileBytesMax));
    RETURN_IF_ERROR(CheckText(file, text));
    bytes += text.size();
    if (!found.emplace(name, std::move(text)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--file ", file, ": two files have this name"));
    }
  }
  if (bytes <= kFileBytesMax) return found;
  return absl::InvalidArgumentError(absl::StrCat("--file: all files together have ", bytes,
                                                 " bytes, but a ConfigMap may have at most ",
                                                 kFileBytesMax, ": put the files into the image"));
}

// Sets the number of GPUs of each worker. If Leeway computes the model, the job's device specifies
// whether a worker uses a GPU. A pod that has a GPU must compute on it.
absl::Status TakeGpus(int64_t asked, v1::TrainingJob& job, KubernetesRun& run) {
  if (IsExternal(job)) {
    run.gpus = std::max<int64_t>(asked, 0);
    return absl::OkStatus();
  }
  if (asked > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--gpus ", asked, ": a worker computes on one GPU; to use more GPUs, set workers.count"));
  }
  if (asked == 0 && OnGpu(job)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--gpus 0: the job says workers.device: ", job.workers().device()));
  }
  if (asked == 1 && !OnGpu(job)) job.mutable_workers()->set_device("cuda");
  run.gpus = OnGpu(job) ? 1 : 0;
  return absl::OkStatus();
}

// Returns an error if the job needs something that is impossible in a pod or between two pods.
absl::Status CheckPods(const v1::TrainingJob& job) {
  const v1::TransportType transport = job.transport().type();
  if (transport == v1::TRANSPORT_TYPE_SHM || transport == v1::TRANSPORT_TYPE_UNIX) {
    return absl::InvalidArgumentError(
        "transport.type: pods share no memory and no sockets; use auto or tcp");
  }
  const std::optional<DeviceChoice> device = ParseDevice(job.workers().device());
  if (device.has_value() && device->index.value_or(0) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("workers.device: ", job.workers().device(), ": a pod's only GPU is cuda:0"));
  }
  for (const std::string& file : FileNames(job)) {
    if (!IsAbsoluteData(file)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the job reads ", file,
        ": a worker's pod reads its data folder only; name the file relative to that folder, and "
        "give the folder by --data-claim, or by --data s3://BUCKET/PREFIX"));
  }
  return absl::OkStatus();
}

// Sets the memory sizes that no flag has set. If workers hold the blocks, each needs a server's
// memory as well, and server 0 needs none for the model.
absl::Status PlanMemory(const std::string& job_file, const std::string& data,
                        const PlacedJob& placed, KubernetesRun& run) {
  const bool workers_hold = run.workers_hold_blocks;
  if (workers_hold && run.server_memory.empty()) run.server_memory = ServerMemory(0);
  if (!run.server_memory.empty() && !run.worker_memory.empty()) return absl::OkStatus();
  if (IsExternal(placed.job)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model comes with the program, so its size is not known: give ",
                     workers_hold ? "" : "--server-memory and ", "--worker-memory"));
  }
  ASSIGN_OR_RETURN(const std::string data_dir, FindDataFolder(data, job_file, placed.job));
  ASSIGN_OR_RETURN(const CheckedJob checked, CheckJobAndInitial(placed, data_dir));
  std::cerr << WarningsOf(placed.job, checked);
  ASSIGN_OR_RETURN(const ProcessBytes most, MostBytes(placed.job, checked, data_dir));
  if (run.server_memory.empty()) run.server_memory = ServerMemory(most.server);
  const uint64_t worker = most.worker + (workers_hold ? most.server : 0);
  if (run.worker_memory.empty()) run.worker_memory = WorkerMemory(worker, run.gpus > 0);
  return absl::OkStatus();
}

// Returns an error if the job has a security setting that its pods would ignore or could not use.
absl::Status CheckSecurity(const PlacedJob& placed, const KubernetesRun& run) {
  const v1::Security& security = placed.job.security();
  const bool plain = security.tls().mode() == v1::TLS_MODE_NONE;
  const auto refuse = [&](const char* key, const char* why) {
    return placed.places.Place(AtKey(absl::InvalidArgumentError(why), key));
  };
  if (run.secrets.empty()) {
    constexpr char kWhy[] = "with --insecure the pods mount no such file: leave out one of the two";
    if (!plain) return refuse("security.tls.mode", kWhy);
    if (security.has_token_file()) return refuse("security.token_file", kWhy);
    return absl::OkStatus();
  }
  // Certificates turn TLS on, so the mode `none` contradicts them. But a job that sets a token also
  // has the mode `none` if the user chose no mode, so it is accepted.
  if (!placed.job.has_security() || !plain || security.has_token_file()) return absl::OkStatus();
  return refuse("security.tls.mode",
                "contradicts the pods' certificates: use --insecure, or leave `security` out "
                "of the job (--set security=)");
}

absl::Status TakeKeys(const KubernetesFlags& flags, const PlacedJob& placed, KubernetesRun& run) {
  if (flags.secrets.has_value()) {
    run.secrets = *flags.secrets;
  } else if (flags.insecure) {
    run.secrets.clear();
  } else if (!flags.keys.empty()) {
    run.secrets = run.name;
  }
  RETURN_IF_ERROR(CheckSecurity(placed, run));
  if (flags.keys.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(run.keys, RunSecrets::Read(flags.keys, run.worker_role()));
  return absl::OkStatus();
}

absl::Status TakeLocation(absl::string_view flag, const std::string& given, std::string& location) {
  const auto normal = NormalLocation(given);
  if (!normal.ok()) return Annotate(normal.status(), flag);
  location = *normal;
  return absl::OkStatus();
}

// If --data is in an object store, sets it as the data folder of the workers, which then read from
// the store. Otherwise --data is a folder on this machine, which only this command reads.
absl::Status TakeData(const std::string& data, KubernetesRun& run) {
  if (!IsObjectLocation(data)) return absl::OkStatus();
  if (!run.data_claim.empty()) {
    return absl::InvalidArgumentError(
        "--data-claim: --data already names the data, in an object store; leave --data-claim out");
  }
  if (!run.program.empty()) {
    return absl::InvalidArgumentError("--data: the program reads its own data; leave --data out");
  }
  return TakeLocation("--data", data, run.data_store);
}

absl::Status TakeProgram(const KubernetesFlags& flags, const v1::TrainingJob& job,
                         KubernetesRun& run) {
  RETURN_IF_ERROR(CheckCommand(job, run.program, "leeway kubernetes JOB --image IMAGE"));
  if (run.program.empty()) {
    if (flags.files.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--file: the job has no program that could use the file");
  }
  ASSIGN_OR_RETURN(run.program_files, ReadProgramFiles(flags.files));
  const auto unset = [](const std::string&) { return std::optional<std::string>(); };
  run.program_environment = ProgramEnvironment(job, unset);
  // Set HOME to a writable folder, because libraries keep files for their user there.
  run.program_environment.emplace_back("HOME", "/tmp");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KubernetesRun> RunOfJob(PlacedJob placed, const std::string& job_file,
                                       const std::string& data, const KubernetesFlags& flags) {
  v1::TrainingJob& job = placed.job;
  KubernetesRun run = flags.run;
  run.shape = FindShape(flags.shape);
  run.workers_hold_blocks = WorkersHoldBlocks(job);
  if (run.name.empty()) run.name = job.metadata().name();
  if (run.worker_image.empty()) run.worker_image = run.image;
  RETURN_IF_ERROR(TakeData(data, run));
  RETURN_IF_ERROR(TakeLocation("--run-dir", run.store, run.store));
  RETURN_IF_ERROR(CheckPods(job));
  RETURN_IF_ERROR(TakeGpus(flags.gpus, job, run));
  RETURN_IF_ERROR(TakeProgram(flags, job, run));
  RETURN_IF_ERROR(TakeKeys(flags, placed, run));
  RETURN_IF_ERROR(PlanMemory(job_file, data, placed, run));
  run.job = ToYaml(job);
  run.servers = ServerProcessesOf(job);
  run.replicas = job.servers().replicas();
  run.workers = job.workers().count();
  run.worker_processors = job.workers().threads();
  RETURN_IF_ERROR(CheckRun(run));
  return run;
}

}  // namespace leeway
