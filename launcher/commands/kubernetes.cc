// leeway kubernetes: prints a job as the objects of a cluster.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/files/files.h"
#include "common/job_key.h"
#include "common/object_store/address.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "common/utf8.h"
#include "config/device.h"
#include "config/external.h"
#include "config/job.h"
#include "launcher/commands/checked_job.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/job_needs.h"
#include "launcher/commands/worker_command.h"
#include "launcher/kubernetes/names.h"
#include "launcher/kubernetes/pod_sizes.h"
#include "launcher/kubernetes/run_manifests.h"
#include "worker/data/data_folder.h"
#include "worker/data/sources/job_files.h"

namespace leeway {
namespace {

// The largest total size of the program's files. A ConfigMap may hold 1 MiB; the rest is room for
// its other fields.
constexpr uint64_t kFileBytesMax = 900 << 10;

struct KubernetesOptions {
  JobOptions job;
  // The flags set some of its fields directly; the others come from the job.
  KubernetesRun run;
  std::string shape = "jobset";
  std::string keys;
  std::optional<std::string> secrets;
  bool insecure = false;
  int64_t gpus = -1;
  std::vector<std::string> files;
};

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

// Sets the number of GPUs of each worker. For a model of Leeway's own, the job's device specifies
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

// Sets the memory sizes that no flag has set.
absl::Status PlanMemory(const KubernetesOptions& options, const PlacedJob& placed,
                        KubernetesRun& run) {
  if (!run.server_memory.empty() && !run.worker_memory.empty()) return absl::OkStatus();
  if (IsExternal(placed.job)) {
    return absl::InvalidArgumentError(
        "the model comes with the program, so its size is not known: give --server-memory and "
        "--worker-memory");
  }
  ASSIGN_OR_RETURN(const std::string data_dir,
                   FindDataFolder(options.job.data, options.job.job_file, placed.job));
  ASSIGN_OR_RETURN(const CheckedJob checked, CheckJobAndInitial(placed, data_dir));
  std::cerr << WarningsOf(placed.job, checked);
  ASSIGN_OR_RETURN(const ProcessBytes most, MostBytes(placed.job, checked, data_dir));
  if (run.server_memory.empty()) run.server_memory = ServerMemory(most.server);
  if (run.worker_memory.empty()) run.worker_memory = WorkerMemory(most.worker, run.gpus > 0);
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
  // Certificates turn TLS on, so `none` contradicts them. A resolved job with a token is not
  // refused, because its mode is `none` even if the user did not choose that.
  if (!placed.job.has_security() || !plain || security.has_token_file()) return absl::OkStatus();
  return refuse("security.tls.mode",
                "contradicts the pods' certificates: use --insecure, or leave `security` out "
                "of the job (--set security=)");
}

absl::Status TakeKeys(const KubernetesOptions& options, const PlacedJob& placed,
                      KubernetesRun& run) {
  if (options.secrets.has_value()) {
    run.secrets = *options.secrets;
  } else if (options.insecure) {
    run.secrets.clear();
  } else if (!options.keys.empty()) {
    run.secrets = run.name;
  }
  RETURN_IF_ERROR(CheckSecurity(placed, run));
  if (options.keys.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(run.keys, RunSecrets::Read(options.keys));
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
absl::Status TakeData(const KubernetesOptions& options, KubernetesRun& run) {
  if (!IsObjectLocation(options.job.data)) return absl::OkStatus();
  if (!run.data_claim.empty()) {
    return absl::InvalidArgumentError(
        "--data-claim: --data already names the data, in an object store; leave --data-claim out");
  }
  if (!run.program.empty()) {
    return absl::InvalidArgumentError("--data: the program reads its own data; leave --data out");
  }
  return TakeLocation("--data", options.job.data, run.data_store);
}

absl::Status TakeProgram(const KubernetesOptions& options, const v1::TrainingJob& job,
                         KubernetesRun& run) {
  RETURN_IF_ERROR(CheckCommand(job, run.program, "leeway kubernetes JOB --image IMAGE"));
  if (run.program.empty()) {
    if (options.files.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--file: the job has no program that could use the file");
  }
  ASSIGN_OR_RETURN(run.program_files, ReadProgramFiles(options.files));
  const auto unset = [](const std::string&) { return std::optional<std::string>(); };
  run.program_environment = ProgramEnvironment(job, unset);
  // HOME is a folder that can be written, because libraries keep files for their user there.
  run.program_environment.emplace_back("HOME", "/tmp");
  return absl::OkStatus();
}

absl::Status ShowManifests(const KubernetesOptions& options) {
  ASSIGN_OR_RETURN(PlacedJob placed, LoadJobWithOptions(options.job));
  v1::TrainingJob& job = placed.job;
  KubernetesRun run = options.run;
  run.shape = FindShape(options.shape);
  if (run.name.empty()) run.name = job.metadata().name();
  if (run.worker_image.empty()) run.worker_image = run.image;
  RETURN_IF_ERROR(TakeData(options, run));
  RETURN_IF_ERROR(TakeLocation("--run-dir", run.store, run.store));
  RETURN_IF_ERROR(CheckPods(job));
  RETURN_IF_ERROR(TakeGpus(options.gpus, job, run));
  RETURN_IF_ERROR(TakeProgram(options, job, run));
  RETURN_IF_ERROR(TakeKeys(options, placed, run));
  RETURN_IF_ERROR(PlanMemory(options, placed, run));
  run.job = ToYaml(job);
  run.servers = job.servers().count();
  run.replicas = job.servers().replicas();
  run.workers = job.workers().count();
  run.worker_processors = job.workers().threads();
  RETURN_IF_ERROR(CheckRun(run));
  ASSIGN_OR_RETURN(const std::string manifests, RunManifests(run));
  std::cout << manifests;
  return absl::OkStatus();
}

void AddRunOptions(CLI::App& command, KubernetesOptions& options) {
  KubernetesRun& run = options.run;
  command.add_option("--image", run.image, "The image of all pods")->required();
  command.add_option("--worker-image", run.worker_image,
                     "Another one for the workers: with GPUs, or with a program of your own");
  command.add_option("--shape", options.shape, "By which objects the pods are started")
      ->check(CLI::IsMember(ShapeNames()))
      ->capture_default_str();
  command.add_option("--name", run.name,
                     "The run's name, with which all its objects begin (default: the job's)");
  command.add_option("--namespace", run.space, "The namespace (default: that of kubectl)");
  command.add_option("--queue", run.queue, "Queue of Kueue, or of Volcano");
  command.add_flag("--resume", run.resume,
                   "Go on from the newest checkpoint if the run was stopped or has failed");
  command.add_flag("--restart-job", run.restart_job,
                   "Make the Job of a rank anew alone; needs JobSet 0.12 with the gate RestartJob");
  command.add_flag("--alerts", run.alerts, "Print alerts for the Prometheus operator, too");
}

void AddStorageOptions(CLI::App& command, KubernetesRun& run) {
  CLI::Option* store = command.add_option(
      "--run-dir", run.store, "s3://BUCKET/PREFIX for the run folders, in place of a claim");
  for (const auto& [name, value, text] :
       {std::tuple{"--storage", &run.storage, "Size of the claim for the run folder"},
        std::tuple{"--storage-class", &run.storage_class, "Its class (default: the cluster's)"}}) {
    command.add_option(name, *value, text)->excludes(store)->capture_default_str();
  }
  command.add_option("--access-mode", run.access_mode, "Its mode; ReadWriteOnce needs one node")
      ->check(CLI::IsMember({"ReadWriteMany", "ReadWriteOnce"}))
      ->excludes(store)
      ->capture_default_str();
  command.add_option("--store-secret", run.store_secret,
                     "The Secret with the object store's variables (docs/storage.md)");
  command.add_option("--store-port", run.store_port, "The object store's port")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  command.add_option("--data-claim", run.data_claim,
                     "Claim with the training data (default: the samples of the image)");
}

void AddKeyOptions(CLI::App& command, KubernetesOptions& options) {
  CLI::Option* insecure =
      command.add_flag("--insecure", options.insecure, "Plain text, for a network that you trust");
  command
      .add_option("--secrets", options.secrets,
                  "What the names of the Secrets with certificates and token begin with "
                  "(default: leeway, and with --keys the run's name)")
      ->excludes(insecure);
  command
      .add_option("--keys", options.keys, "Folder of leeway certificates: print those Secrets, too")
      ->excludes(insecure);
}

void AddSizeOptions(CLI::App& command, KubernetesOptions& options) {
  command.add_option("--server-memory", options.run.server_memory,
                     "Memory of each server, such as 2Gi (default: by leeway plan)");
  command.add_option("--worker-memory", options.run.worker_memory,
                     "Memory of each worker; with both set, the data are not read");
  command.add_option("--worker-storage", options.run.worker_storage,
                     "Storage of each worker on its node, for copies of a store's data and /tmp "
                     "(default: what the cluster gives)");
  command
      .add_option("--gpus", options.gpus,
                  "GPUs of each worker (default: 1 if the job says workers.device: cuda)")
      ->check(CLI::Range(0, 64));
  command.add_option("--file", options.files,
                     "A file of the program's, which finds it in its folder; may be repeated");
}

}  // namespace

void AddKubernetesCommand(CLI::App& app, int& exit_code, std::vector<std::string> program) {
  auto options = std::make_shared<KubernetesOptions>();
  options->run.program = std::move(program);
  CLI::App* command = app.add_subcommand(
      "kubernetes", "Print a job as the objects that kubectl apply takes; starts nothing");
  command->add_option("JOB", options->job.job_file, "The job file")->required();
  AddSetOption(*command, options->job);
  AddDataOption(*command, options->job.data);
  AddRunOptions(*command, *options);
  AddKeyOptions(*command, *options);
  AddStorageOptions(*command, options->run);
  AddSizeOptions(*command, *options);
  command->footer("-- COMMAND: the program that workers of an external job run.");
  command->callback([options, &exit_code] { exit_code = ShowResult(ShowManifests(*options)); });
}

}  // namespace leeway
