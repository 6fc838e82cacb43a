#include "launcher/commands/kubernetes_sizes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace leeway {
namespace {

constexpr uint64_t kMebi = uint64_t{1} << 20;
// A process of either kind without a model, generously: a limit that is too low kills.
constexpr uint64_t kProcess = 160 * kMebi;
// CUDA's libraries and what they keep on the host.
constexpr uint64_t kCuda = 2048 * kMebi;
// Half a processor, as the manifests have it: a server takes what is free.
constexpr absl::string_view kServerProcessors = "500m";

// "640Mi".
std::string LimitFor(uint64_t bytes) {
  constexpr uint64_t kStep = 64 * kMebi;
  const uint64_t wanted = bytes + bytes / 4;
  return absl::StrCat((wanted + kStep - 1) / kStep * kStep / kMebi, "Mi");
}

// The patches of one kind of object.
class Target {
 public:
  Target(std::string& text, absl::string_view target) : text_(text) {
    absl::StrAppend(&text_, "  - target: {", target, "}\n    patch: |-\n");
  }

  Target& Replace(absl::string_view path, absl::string_view value) {
    absl::StrAppend(&text_, "      - {op: replace, path: ", path, ", value: ", value, "}\n");
    return *this;
  }
  // Of the first container of a pod's template.
  Target& Resources(absl::string_view pod, absl::string_view processors, absl::string_view memory) {
    const std::string resources = absl::StrCat(pod, "/spec/containers/0/resources");
    Replace(absl::StrCat(resources, "/requests"),
            absl::StrCat("{cpu: \"", processors, "\", memory: ", memory, "}"));
    return Replace(absl::StrCat(resources, "/limits/memory"), memory);
  }

 private:
  std::string& text_;
};

// Both kinds of containers, as text.
struct Pods {
  std::string servers;
  std::string workers;
  std::string server_memory;
  std::string worker_memory;
  std::string threads;
};

void AddJobSet(std::string& text, const Pods& pods) {
  Target(text, "group: jobset.x-k8s.io, kind: JobSet")
      .Replace("/spec/replicatedJobs/0/replicas", pods.servers)
      .Replace("/spec/replicatedJobs/1/replicas", pods.workers)
      .Resources("/spec/replicatedJobs/0/template/spec/template", kServerProcessors,
                 pods.server_memory)
      .Resources("/spec/replicatedJobs/1/template/spec/template", pods.threads, pods.worker_memory);
}

void AddStatefulSet(std::string& text, const Pods& pods) {
  Target(text, "kind: StatefulSet, name: leeway-server")
      .Replace("/spec/replicas", pods.servers)
      .Resources("/spec/template", kServerProcessors, pods.server_memory);
  Target(text, "group: batch, kind: Job, name: leeway-worker")
      .Replace("/spec/completions", pods.workers)
      .Replace("/spec/parallelism", pods.workers)
      .Resources("/spec/template", pods.threads, pods.worker_memory);
}

void AddTrainer(std::string& text, const Pods& pods) {
  const std::string servers = "/spec/template/spec/replicatedJobs/0/template/spec";
  const std::string workers = "/spec/template/spec/replicatedJobs/1/template/spec";
  Target(text, "group: trainer.kubeflow.org, kind: \"(Cluster)?TrainingRuntime\"")
      .Replace("/spec/mlPolicy/numNodes", pods.workers)
      .Replace(servers + "/completions", pods.servers)
      .Replace(servers + "/parallelism", pods.servers)
      .Replace(workers + "/completions", pods.workers)
      .Replace(workers + "/parallelism", pods.workers)
      .Resources(servers + "/template", kServerProcessors, pods.server_memory)
      .Resources(workers + "/template", pods.threads, pods.worker_memory);
  Target(text, "group: trainer.kubeflow.org, kind: TrainJob")
      .Replace("/spec/trainer/numNodes", pods.workers);
}

void AddVolcano(std::string& text, const Pods& pods, uint32_t all) {
  Target(text, "group: batch.volcano.sh, kind: Job")
      .Replace("/spec/minAvailable", absl::StrCat(all))
      .Replace("/spec/tasks/0/replicas", pods.servers)
      .Replace("/spec/tasks/1/replicas", pods.workers)
      .Resources("/spec/tasks/0/template", kServerProcessors, pods.server_memory)
      .Resources("/spec/tasks/1/template", pods.threads, pods.worker_memory);
}

void AddTfJob(std::string& text, const Pods& pods) {
  Target(text, "group: kubeflow.org, kind: TFJob")
      .Replace("/spec/tfReplicaSpecs/PS/replicas", pods.servers)
      .Replace("/spec/tfReplicaSpecs/Worker/replicas", pods.workers)
      .Resources("/spec/tfReplicaSpecs/PS/template", kServerProcessors, pods.server_memory)
      .Resources("/spec/tfReplicaSpecs/Worker/template", pods.threads, pods.worker_memory);
}

// The budget of a StatefulSet is another: it goes by its scale.
void AddBudget(std::string& text, const PodSizes& sizes) {
  // One at a time with a single copy too: else no node could ever be drained.
  const uint32_t may_go = std::max<uint32_t>(1, sizes.replicas - 1);
  Target(text, "kind: PodDisruptionBudget, name: leeway-server")
      .Replace("/spec/minAvailable", absl::StrCat(sizes.servers - std::min(may_go, sizes.servers)));
}

}  // namespace

std::string KubernetesSizes(const PodSizes& sizes) {
  const Pods pods{
      .servers = absl::StrCat(sizes.servers),
      .workers = absl::StrCat(sizes.workers),
      .server_memory = LimitFor(sizes.server_bytes + kProcess),
      .worker_memory =
          LimitFor(sizes.worker_bytes + kProcess + (sizes.on_gpu ? kCuda : uint64_t{0})),
      .threads = absl::StrCat(sizes.worker_threads),
  };
  std::string text =
      "# Numbers of pods and their resources: a component beside those of deploy/kubernetes.\n"
      "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n";
  AddJobSet(text, pods);
  AddStatefulSet(text, pods);
  AddTrainer(text, pods);
  AddVolcano(text, pods, sizes.servers + sizes.workers);
  AddTfJob(text, pods);
  AddBudget(text, sizes);
  return text;
}

}  // namespace leeway
