// By which kinds of objects a run is started on Kubernetes.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace leeway {

struct Shape {
  // And its template's (deploy/kubernetes).
  absl::string_view name;
  absl::string_view worker_container;
  absl::string_view server_container;
  // Labels of a pod that say its rank; empty: a variable that its controller sets does.
  absl::string_view server_rank = {};
  absl::string_view worker_rank = {};
  // Host names, with ${name} for the run's; empty: a variable that its controller sets has all.
  absl::string_view coordinator = {};
  absl::string_view advertise = {};
  // The name of the port for calls to a server.
  absl::string_view server_port = "grpc";
  // What follows the run's name in the longest name of a pod or label, with a # for the rank.
  absl::string_view longest;
  // Pods are not restarted by their controller in place.
  bool servers_end = true;
  bool workers_end = true;
  // Names are there before the pods are ready, so readiness can wait for the model.
  bool readiness = true;
  // Kueue can admit the run as a whole, or the shape has queues of its own.
  bool queue = true;
  bool restart_job = false;
  // JobSet labels all pods with the coordinator's address.
  bool coordinator_is_label = false;
  // The number of servers can be changed while the run goes on.
  bool scales = false;
  // A Service of their own gives the workers host names, because their Job has none.
  bool worker_names = false;
};

const std::vector<Shape>& Shapes();
std::vector<std::string> ShapeNames();
// Null if there is none of the name.
const Shape* FindShape(absl::string_view name);

}  // namespace leeway
