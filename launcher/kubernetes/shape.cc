#include "launcher/kubernetes/shape.h"

namespace leeway {
namespace {

constexpr char kJobIndex[] = "jobset.sigs.k8s.io/job-index";
constexpr char kCompletionIndex[] = "batch.kubernetes.io/job-completion-index";
constexpr char kPodIndex[] = "apps.kubernetes.io/pod-index";

}  // namespace

const std::vector<Shape>& Shapes() {
  static const std::vector<Shape> shapes = {
      {.name = "jobset",
       .worker_container = "worker",
       .server_container = "server",
       .server_rank = kJobIndex,
       .worker_rank = kJobIndex,
       .coordinator = "${name}-server-0-0.${name}",
       .advertise = "${name}-server-$(LEEWAY_RANK)-0.${name}",
       .longest = "-worker-#-0-abcde",
       .restart_job = true,
       .coordinator_is_label = true},
      {.name = "statefulset",
       .worker_container = "worker",
       .server_container = "server",
       .server_rank = kPodIndex,
       .worker_rank = kCompletionIndex,
       .coordinator = "${name}-server-0.${name}-server",
       .advertise = "${name}-server-$(LEEWAY_RANK).${name}-server",
       .longest = "-server-#-abcdefghij",  // the label controller-revision-hash, or a worker's pod
       .servers_end = false,
       .queue = false,
       .scales = true,
       .worker_names = true},
      {.name = "kubeflow",
       .worker_container = "node",
       .server_container = "server",
       .server_rank = kCompletionIndex,
       .worker_rank = kCompletionIndex,
       .coordinator = "${name}-server-0-0.${name}",
       .advertise = "${name}-server-0-$(LEEWAY_RANK).${name}",
       .longest = "-server-0-#-abcde",
       .restart_job = true},
      {.name = "volcano",
       .worker_container = "worker",
       .server_container = "server",
       .coordinator = "${name}-server-0.${name}",
       .advertise = "$(POD).${name}",
       .longest = "-server-#"},
      {.name = "tfjob",
       .worker_container = "tensorflow",
       .server_container = "tensorflow",
       .server_port = "tfjob-port",
       .longest = "-worker-#",
       .servers_end = false,
       .workers_end = false,
       .readiness = false},
  };
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
