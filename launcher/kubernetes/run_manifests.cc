#include "launcher/kubernetes/run_manifests.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/object_store/address.h"
#include "common/security/role.h"
#include "common/status.h"
#include "launcher/kubernetes/names.h"
#include "launcher/kubernetes/pod_sizes.h"
#include "launcher/kubernetes/template.h"
#include "launcher/kubernetes/templates.h"

namespace leeway {
namespace {

// The separator between two YAML documents.
constexpr char kNext[] = "---\n";
// The end of the longest name of a Secret, after the value of --secrets.
constexpr absl::string_view kSecretEnd = "-server-tls";
constexpr absl::string_view kSamples = "/usr/share/leeway/data";
constexpr absl::string_view kDataMount = "/data";
// A pod's own name, in a host name.
constexpr absl::string_view kPod = "$(POD)";
// A server requests half a processor (in thousandths), and uses more if processors are free.
constexpr uint32_t kServerMillis = 500;
// The most tries of the startup probe, two seconds apart. A user's own program gets more tries,
// because it answers only once it has joined the job.
constexpr int kStartupTries = 60;
constexpr int kProgramStartupTries = 300;

std::string If(bool holds) { return holds ? "yes" : ""; }

// Writes a string as JSON, which is also a YAML string in one line.
std::string InOneLine(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string InOneLine(const std::vector<std::string>& words) {
  return nlohmann::json(words).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Doubles each $ in a container's words, because Kubernetes would replace $(VARIABLE).
std::vector<std::string> Literally(std::vector<std::string> words) {
  for (std::string& word : words) word = absl::StrReplaceAll(word, {{"$", "$$"}});
  return words;
}

absl::StatusOr<std::string> Fill(absl::string_view name, const TemplateValues& values) {
  auto filled = FillTemplate(KubernetesTemplate(name), values);
  if (!filled.ok()) return Annotate(filled.status(), absl::StrCat("template ", name));
  return filled;
}

std::string Named(absl::string_view pattern, const std::string& name) {
  return absl::StrReplaceAll(pattern, {{"${name}", name}});
}

// Returns whether workers use the object store: for their data, or for their part of checkpoints.
bool WorkersReachStore(const KubernetesRun& run) {
  return !run.data_store.empty() || (run.workers_hold_blocks && !run.store.empty());
}

std::string FileLines(const std::map<std::string, std::string>& files) {
  std::string lines;
  for (const auto& [name, content] : files) {
    absl::StrAppend(&lines, InOneLine(name), ": ", InOneLine(content), "\n");
  }
  return lines;
}

// Returns the kinds of rules that the workers' own policy adds. Empty if they need none.
std::string WorkerPolicy(const KubernetesRun& run) {
  if (!run.workers_hold_blocks) return run.data_store.empty() ? "" : "Egress";
  return WorkersReachStore(run) ? "Ingress, Egress" : "Ingress";
}

// Returns the values that all templates share.
TemplateValues ValuesOf(const KubernetesRun& run) {
  const uint32_t holders = run.workers_hold_blocks ? run.workers : run.servers;
  return {
      {"name", run.name},
      {"space", run.space},
      {"namespace", run.space.empty() ? "" : absl::StrCat("namespace: \"", run.space, "\"")},
      {"job", run.job},
      {"servers", absl::StrCat(run.servers)},
      {"workers", absl::StrCat(run.workers)},
      {"pods", absl::StrCat(run.servers + run.workers)},
      {"peers", If(run.workers_hold_blocks)},
      {"holder", run.workers_hold_blocks ? "worker" : "server"},
      {"holders_stay", absl::StrCat(HoldersThatStay(holders, run.replicas))},
      {"scales", If(run.shape->scales && !run.workers_hold_blocks)},
      {"storage", run.storage},
      {"storage_class", run.storage_class},
      {"access_mode", run.access_mode},
      {"run_volume", If(run.store.empty())},
      {"run_dir", absl::StrCat(run.store.empty() ? "/var/lib/leeway" : run.store, "/", run.name)},
      {"store", run.store},
      {"store_secret", run.store_secret},
      {"store_port", absl::StrCat(run.store_port)},
      {"worker_policy", WorkerPolicy(run)},
      {"worker_store", If(WorkersReachStore(run))},
      {"secrets", run.secrets},
      {"keys", If(!run.secrets.empty())},
      {"grpc_protocol", run.secrets.empty() ? "kubernetes.io/h2c" : "https"},
      {"queue", run.queue},
      {"volcano_queue", run.queue.empty() ? "default" : run.queue},
      {"restart_job", If(run.restart_job)},
      {"program_files", FileLines(run.program_files)},
      {"coordinator", Named(run.shape->coordinator, run.name)},
      {"grpc_port", std::string(run.shape->server_port)},
  };
}

// Adds the values of a server's pod to `values`.
TemplateValues ServerValues(const KubernetesRun& run, TemplateValues values) {
  const Shape& shape = *run.shape;
  values.insert({
      {"role", "server"},
      {"server", If(true)},
      {"listens", If(true)},
      {"advertise", Named(shape.advertise, run.name)},
      {"certificate", "server"},
      {"container", std::string(shape.server_container)},
      {"image", run.image},
      {"ends", If(shape.servers_end)},
      {"subdomain", ""},
      {"rank_label", std::string(shape.server_rank)},
      {"pod_name", If(absl::StrContains(shape.advertise, kPod))},
      {"readiness", If(shape.readiness)},
      {"resume", If(run.resume)},
      {"cpu", absl::StrCat(kServerMillis, "m")},
      {"memory", run.server_memory},
      {"own_storage", ""},
      {"gpus", ""},
      {"data", ""},
      {"data_claim", ""},
      {"data_path", ""},
      {"data_cache", ""},
      {"store_keys", If(!run.store.empty())},
      {"program", ""},
      {"command", ""},
      {"program_environment", ""},
      {"startup_tries", absl::StrCat(kStartupTries)},
      {"tmp_size", "64Mi"},
  });
  return values;
}

// Returns a processor for each thread, and what a server requests if the worker is one, too.
std::string WorkerProcessors(const KubernetesRun& run) {
  if (!run.workers_hold_blocks) return absl::StrCat(run.worker_processors);
  return absl::StrCat(1000 * uint64_t{run.worker_processors} + kServerMillis, "m");
}

std::string DataPath(const KubernetesRun& run) {
  if (!run.data_store.empty()) return run.data_store;
  return std::string(run.data_claim.empty() ? kSamples : kDataMount);
}

std::string EnvironmentLines(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::string lines;
  for (const auto& [name, value] : variables) {
    absl::StrAppend(&lines, "- {name: ", name, ", value: ", InOneLine(value), "}\n");
  }
  return lines;
}

// Adds the values of a worker's pod to `values`.
TemplateValues WorkerValues(const KubernetesRun& run, TemplateValues values) {
  const Shape& shape = *run.shape;
  const bool program = !run.program.empty();
  values.insert({
      {"role", "worker"},
      {"server", ""},
      {"listens", If(run.workers_hold_blocks)},
      {"advertise", Named(shape.worker_advertise, run.name)},
      {"certificate", RoleName(run.worker_role())},
      {"container", std::string(shape.worker_container)},
      {"image", run.worker_image},
      {"ends", If(shape.workers_end)},
      {"subdomain", If(shape.worker_names)},
      {"rank_label", std::string(shape.worker_rank)},
      {"pod_name", If(run.workers_hold_blocks && absl::StrContains(shape.worker_advertise, kPod))},
      {"readiness", ""},
      {"resume", ""},
      {"cpu", WorkerProcessors(run)},
      {"memory", run.worker_memory},
      {"own_storage", run.worker_storage},
      {"gpus", run.gpus == 0 ? "" : absl::StrCat(run.gpus)},
      {"data", If(!program || !run.data_claim.empty())},
      {"data_claim", run.data_claim},
      {"data_path", DataPath(run)},
      {"data_cache", If(!run.data_store.empty())},
      {"store_keys", If(WorkersReachStore(run))},
      {"program", If(program)},
      {"command", InOneLine(Literally(run.program))},
      {"program_environment", EnvironmentLines(run.program_environment)},
      {"startup_tries", absl::StrCat(program ? kProgramStartupTries : kStartupTries)},
      {"tmp_size", program ? "4Gi" : "64Mi"},
  });
  return values;
}

absl::Status CheckName(const KubernetesRun& run) {
  const std::string rank = absl::StrCat(std::max(run.servers, run.workers) - 1);
  const std::string longest = absl::StrReplaceAll(run.shape->longest, {{"#", rank}});
  size_t most = kHostLabelLength - longest.size();
  if (run.shape->coordinator_is_label) {
    const size_t once = Named(run.shape->coordinator, "").size();
    most = std::min(most, (kHostLabelLength - once) / 2);
  }
  const absl::Status fits = CheckHostLabel("--name", run.name, most);
  if (!fits.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(fits.message(), "; names of pods and labels begin with it"));
  }
  for (const absl::string_view end : {"-server", "-worker", "-job", "-program", "-run"}) {
    if (!absl::EndsWith(run.name, end)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--name ", run.name, ": objects of a run ", absl::StripSuffix(run.name, end),
                     " would have this name; choose a name that does not end with ", end));
  }
  return absl::OkStatus();
}

absl::Status CheckLocation(absl::string_view flag, const std::string& location) {
  if (location.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(Annotate(ParseObjectLocation(location).status(), flag));
  if (location.find_first_of("\"\\") == location.npos) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " ", location, ": must not contain quotes or backslashes"));
}

absl::Status CheckStore(const KubernetesRun& run) {
  if (run.store.empty() && run.data_store.empty()) {
    if (run.store_secret.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "--store-secret: neither --run-dir nor --data is s3://BUCKET/PREFIX");
  }
  RETURN_IF_ERROR(CheckLocation("--run-dir", run.store));
  RETURN_IF_ERROR(CheckLocation("--data", run.data_store));
  if (!run.store_secret.empty()) return CheckObjectName("--store-secret", run.store_secret);
  return absl::InvalidArgumentError(
      "--store-secret: required with an object store: the Secret with its variables "
      "(docs/storage.md)");
}

absl::Status CheckShape(const KubernetesRun& run) {
  const std::string shape = absl::StrCat("--shape ", run.shape->name);
  if (!run.queue.empty() && !run.shape->queue) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--queue: Kueue would admit the servers of ", shape,
        " without the workers; use --shape jobset, kubeflow, tfjob, or volcano with its queues"));
  }
  if (run.restart_job && !run.shape->restart_job) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--restart-job: ", shape, " has no failure policy of JobSet; use jobset or kubeflow"));
  }
  if (run.alerts && run.space.empty()) {
    return absl::InvalidArgumentError(
        "--alerts: needs --namespace, because the rules of the alerts watch one namespace");
  }
  return absl::OkStatus();
}

absl::Status CheckOptionalName(absl::string_view what, const std::string& name,
                               size_t longest = kObjectNameLength) {
  return name.empty() ? absl::OkStatus() : CheckObjectName(what, name, longest);
}

}  // namespace

absl::Status CheckRun(const KubernetesRun& run) {
  RETURN_IF_ERROR(CheckName(run));
  if (!run.space.empty()) RETURN_IF_ERROR(CheckHostLabel("--namespace", run.space));
  RETURN_IF_ERROR(CheckImage("--image", run.image));
  RETURN_IF_ERROR(CheckImage("--worker-image", run.worker_image));
  RETURN_IF_ERROR(CheckBytes("--storage", run.storage));
  RETURN_IF_ERROR(CheckBytes("--server-memory", run.server_memory));
  RETURN_IF_ERROR(CheckBytes("--worker-memory", run.worker_memory));
  if (!run.worker_storage.empty()) {
    RETURN_IF_ERROR(CheckBytes("--worker-storage", run.worker_storage));
  }
  RETURN_IF_ERROR(CheckOptionalName("--storage-class", run.storage_class));
  RETURN_IF_ERROR(CheckOptionalName("--data-claim", run.data_claim));
  RETURN_IF_ERROR(
      CheckOptionalName("--secrets", run.secrets, kObjectNameLength - kSecretEnd.size()));
  if (!run.queue.empty()) RETURN_IF_ERROR(CheckHostLabel("--queue", run.queue));
  RETURN_IF_ERROR(CheckStore(run));
  return CheckShape(run);
}

absl::StatusOr<std::string> RunManifests(const KubernetesRun& run) {
  TemplateValues values = ValuesOf(run);
  std::string secrets, alerts;
  if (run.keys.has_value()) {
    TemplateValues with_keys = values;
    run.keys->AddTo(with_keys);
    with_keys["worker_role"] = RoleName(run.worker_role());
    ASSIGN_OR_RETURN(secrets, Fill("secrets", with_keys));
    absl::StrAppend(&secrets, kNext);
  }
  ASSIGN_OR_RETURN(std::string server, Fill("pod", ServerValues(run, values)));
  ASSIGN_OR_RETURN(std::string worker, Fill("pod", WorkerValues(run, values)));
  values["server_pod"] = std::move(server);
  values["worker_pod"] = std::move(worker);
  ASSIGN_OR_RETURN(const std::string common, Fill("common", values));
  ASSIGN_OR_RETURN(const std::string workload, Fill(run.shape->name, values));
  if (run.alerts) {
    ASSIGN_OR_RETURN(alerts, Fill("alerts", values));
    alerts.insert(0, kNext);
  }
  return absl::StrCat(secrets, common, kNext, workload, alerts);
}

}  // namespace leeway
