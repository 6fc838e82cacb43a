// A process's place in its job. An orchestrator that starts the process sets the place in
// environment variables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/environment.h"

namespace leeway {

struct EnvironmentPlace {
  // The index of a server, or the rank of a worker.
  std::optional<uint32_t> rank = std::nullopt;
  // `coordinator` is the address (HOST:PORT) of server 0. `own_address` is the address at which
  // other processes reach this server. Each is empty if the environment does not set it.
  std::string coordinator = {};
  std::string own_address = {};
};

enum class PlaceRole { kServer, kWorker };

// Returns the place of this process. Each field comes from the first of these sources that sets it:
//
//   LEEWAY_RANK, LEEWAY_COORDINATOR, LEEWAY_ADVERTISE; LEEWAY_ROLE (server, worker)
//   JOB_COMPLETION_INDEX            Kubernetes, Indexed Job
//   TF_CONFIG                       Kubeflow's TFJob and others: `ps` are the servers; the workers
//                                   with type `chief` or `master` have the first ranks
//   VC_TASK_INDEX                   Volcano
//   RANK                            torchrun; workers only
//
// Returns INVALID_ARGUMENT, naming the variable, if a value is not valid, or if it names another
// role than that of `program`. docs/operations.md (Places from the environment) is the guide for
// users.
absl::StatusOr<EnvironmentPlace> PlaceFromEnvironment(
    PlaceRole program, const EnvironmentLookup& look_up = LookUpEnvironment);

}  // namespace leeway
