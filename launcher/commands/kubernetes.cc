// leeway kubernetes: prints a job as the objects of a cluster.
#include <iostream>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/status.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"
#include "launcher/kubernetes/job_run.h"
#include "launcher/kubernetes/run_manifests.h"

namespace leeway {
namespace {

struct KubernetesOptions {
  JobFlags job;
  KubernetesFlags flags;
};

absl::Status ShowManifests(const KubernetesOptions& options) {
  ASSIGN_OR_RETURN(PlacedJob placed, LoadJobWithOptions(options.job));
  ASSIGN_OR_RETURN(const KubernetesRun run, RunOfJob(std::move(placed), options.job.job_file,
                                                     options.job.data, options.flags));
  ASSIGN_OR_RETURN(const std::string manifests, RunManifests(run));
  std::cout << manifests;
  return absl::OkStatus();
}

void AddRunOptions(CLI::App& command, KubernetesFlags& flags) {
  KubernetesRun& run = flags.run;
  command.add_option("--image", run.image, "The image of all pods")->required();
  command.add_option("--worker-image", run.worker_image,
                     "The workers' image, if different: with GPUs, or with your own program");
  command.add_option("--shape", flags.shape, "The kind of objects that start the pods")
      ->check(CLI::IsMember(ShapeNames()))
      ->capture_default_str();
  command.add_option("--name", run.name,
                     "The run's name, a prefix of the names of its objects (default: the job's)");
  command.add_option("--namespace", run.space, "The namespace (default: that of kubectl)");
  command.add_option("--queue", run.queue, "The queue of Kueue or Volcano");
  command.add_flag("--resume", run.resume,
                   "Go on from the newest checkpoint if the run was stopped or has failed");
  command.add_flag("--restart-job", run.restart_job,
                   "Make only a failed rank's Job again; needs JobSet 0.12, gate RestartJob");
  command.add_flag("--alerts", run.alerts, "Print alerts for the Prometheus operator, too");
}

void AddStorageOptions(CLI::App& command, KubernetesRun& run) {
  CLI::Option* store = command.add_option(
      "--run-dir", run.store, "s3://BUCKET/PREFIX for the run folders, instead of a volume claim");
  for (const auto& [name, value, text] :
       {std::tuple{"--storage", &run.storage, "Size of the volume claim for the run folder"},
        std::tuple{"--storage-class", &run.storage_class,
                   "Storage class (default: the cluster's)"}}) {
    command.add_option(name, *value, text)->excludes(store)->capture_default_str();
  }
  command.add_option("--access-mode", run.access_mode, "Access mode; ReadWriteOnce needs one node")
      ->check(CLI::IsMember({"ReadWriteMany", "ReadWriteOnce"}))
      ->excludes(store)
      ->capture_default_str();
  command.add_option("--store-secret", run.store_secret,
                     "The Secret with the object store's variables (docs/storage.md)");
  command.add_option("--store-port", run.store_port, "The object store's port")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  command.add_option("--data-claim", run.data_claim,
                     "Volume claim with the training data (default: the samples of the image)");
}

void AddKeyOptions(CLI::App& command, KubernetesFlags& flags) {
  CLI::Option* insecure =
      command.add_flag("--insecure", flags.insecure, "Plain text, for a network that you trust");
  command
      .add_option("--secrets", flags.secrets,
                  "Prefix of the names of the Secrets with certificates and token (default: "
                  "leeway, or with --keys the run's name)")
      ->excludes(insecure);
  command
      .add_option("--keys", flags.keys, "Folder of `leeway certificates`; prints its Secrets, too")
      ->excludes(insecure);
}

void AddSizeOptions(CLI::App& command, KubernetesFlags& flags) {
  command.add_option("--server-memory", flags.run.server_memory,
                     "Memory of each server, such as 2Gi (default: as `leeway plan` computes it)");
  command.add_option("--worker-memory", flags.run.worker_memory,
                     "Memory of each worker; if both are set, the data are not read");
  command.add_option("--worker-storage", flags.run.worker_storage,
                     "Storage of each worker on its node, for copies of a store's data and /tmp "
                     "(default: what the cluster gives)");
  command
      .add_option("--gpus", flags.gpus,
                  "GPUs of each worker (default: 1 if the job says workers.device: cuda)")
      ->check(CLI::Range(0, 64));
  command.add_option("--file", flags.files,
                     "A file that the program needs, and finds in its folder; may be repeated");
}

}  // namespace

void AddKubernetesCommand(CLI::App& app, int& exit_code, std::vector<std::string> program) {
  auto options = std::make_shared<KubernetesOptions>();
  options->flags.run.program = std::move(program);
  CLI::App* command =
      app.add_subcommand("kubernetes", "Print a job as objects for kubectl apply; starts nothing");
  command->add_option("JOB", options->job.job_file, "The job file")->required();
  AddSetOption(*command, options->job);
  AddDataOption(*command, options->job.data);
  AddRunOptions(*command, options->flags);
  AddKeyOptions(*command, options->flags);
  AddStorageOptions(*command, options->flags.run);
  AddSizeOptions(*command, options->flags);
  command->footer("-- COMMAND: the program that workers of an external job run.");
  command->callback([options, &exit_code] { exit_code = ShowResult(ShowManifests(*options)); });
}

}  // namespace leeway
