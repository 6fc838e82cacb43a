#include "launcher/kubernetes/shape.h"

namespace leeway {
namespace {

constexpr char kJobIndex[] = "jobset.sigs.k8s.io/job-index";
constexpr char kCompletionIndex[] = "batch.kubernetes.io/job-completion-index";
constexpr char kPodIndex[] = "apps.kubernetes.io/pod-index";

constexpr Shape kJobSet = {.name = "jobset",
                           .worker_container = "worker",
                           .server_container = "server",
                           .server_rank = kJobIndex,
                           .worker_rank = kJobIndex,
                           .coordinator = "${name}-server-0-0.${name}",
                           .advertise = "${name}-server-$(LEEWAY_RANK)-0.${name}",
                           .worker_advertise = "${name}-worker-$(LEEWAY_RANK)-0.${name}",
                           .longest = "-worker-#-0-abcde",
                           .restart_job = true,
                           .coordinator_is_label = true};

constexpr Shape kStatefulSet = {
    .name = "statefulset",
    .worker_container = "worker",
    .server_container = "server",
    .server_rank = kPodIndex,
    .worker_rank = kCompletionIndex,
    .coordinator = "${name}-server-0.${name}-server",
    .advertise = "${name}-server-$(LEEWAY_RANK).${name}-server",
    .worker_advertise = "${name}-worker-$(LEEWAY_RANK).${name}-worker",
    .longest = "-server-#-abcdefghij",  // the label controller-revision-hash, or a worker's pod
    .servers_end = false,
    .queue = false,
    .scales = true,
    .worker_names = true};

constexpr Shape kKubeflow = {.name = "kubeflow",
                             .worker_container = "node",
                             .server_container = "server",
                             .server_rank = kCompletionIndex,
                             .worker_rank = kCompletionIndex,
                             .coordinator = "${name}-server-0-0.${name}",
                             .advertise = "${name}-server-0-$(LEEWAY_RANK).${name}",
                             .worker_advertise = "${name}-node-0-$(LEEWAY_RANK).${name}",
                             .longest = "-server-0-#-abcde",
                             .restart_job = true};

constexpr Shape kVolcano = {.name = "volcano",
                            .worker_container = "worker",
                            .server_container = "server",
                            .coordinator = "${name}-server-0.${name}",
                            .advertise = "$(POD).${name}",
                            .worker_advertise = "$(POD).${name}",
                            .longest = "-server-#"};

constexpr Shape kTfJob = {
    .name = "tfjob",
    .worker_container = "tensorflow",
    .server_container = "tensorflow",
    .worker_advertise = "$(POD)",  // the operator makes a Service of each pod's name
    .server_port = "tfjob-port",
    .longest = "-worker-#",
    .servers_end = false,
    .workers_end = false,
    .readiness = false};

}  // namespace

const std::vector<Shape>& Shapes() {
  static const std::vector<Shape> shapes = {kJobSet, kStatefulSet, kKubeflow, kVolcano, kTfJob};
  return shapes;
}

std::vector<std::string> ShapeNames() {
  std::vector<std::string> names;
  for (const Shape& shape : Shapes()) names.emplace_back(shape.name);
  return names;
}

const Shape* FindShape(absl::string_view name) {
  for (const Shape& shape : Shapes()) {
    if (shape.name == name) return &shape;
  }
  return nullptr;
}

}  // namespace leeway
