// The kinds of objects with which a run can be started on Kubernetes.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace leeway {

struct Shape {
  // The name of the shape, and of its template (deploy/kubernetes).
  absl::string_view name;
  absl::string_view worker_container;
  absl::string_view server_container;
  // The pod labels that contain the rank. Empty if the pod's controller sets a variable.
  absl::string_view server_rank = {};
  absl::string_view worker_rank = {};
  // Host names of servers, in which ${name} stands for the run's name. Empty if the controller sets
  // a variable with all host names.
  absl::string_view coordinator = {};
  absl::string_view advertise = {};
  // The host name of a worker, for jobs whose workers hold the blocks.
  absl::string_view worker_advertise;
  // The name of the port for calls to a server, or to a worker that holds blocks.
  absl::string_view server_port = "grpc";
  // The text after the run's name in the longest name of a pod or label. # stands for the rank.
  absl::string_view longest;
  // True if the controller does not restart pods in place, for servers and for workers.
  bool servers_end = true;
  bool workers_end = true;
  // True if host names exist before the pods are ready, so readiness can wait for the model.
  bool readiness = true;
  // True if Kueue can admit the run as a whole, or if the shape has queues of its own.
  bool queue = true;
  bool restart_job = false;
  // True if JobSet labels all pods with the coordinator's address.
  bool coordinator_is_label = false;
  // True if the number of servers can change during the run.
  bool scales = false;
  // True if a separate Service gives the workers host names, because their Job gives none.
  bool worker_names = false;
};

const std::vector<Shape>& Shapes();
std::vector<std::string> ShapeNames();
// Returns null for an unknown name.
const Shape* FindShape(absl::string_view name);

}  // namespace leeway
