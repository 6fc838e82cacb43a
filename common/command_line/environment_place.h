// A process's place in its job, as the orchestrator that has started it says in the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/environment.h"

namespace leeway {

struct EnvironmentPlace {
  // The index of a server, the rank of a worker.
  std::optional<uint32_t> rank = std::nullopt;
  // HOST:PORT of server 0, and of this server for the others; empty: not said.
  std::string coordinator = {};
  std::string own_address = {};
};

enum class PlaceRole { kServer, kWorker };

// Each fact is taken from the first of these that says it.
//
//   LEEWAY_RANK, LEEWAY_COORDINATOR, LEEWAY_ADVERTISE; LEEWAY_ROLE (server, worker)
//   JOB_COMPLETION_INDEX            Kubernetes, Indexed Job
//   TF_CONFIG                       Kubeflow's TFJob and others: `ps` are the servers; ranks of
//                                   workers begin with those of type `chief` or `master`
//   VC_TASK_INDEX                   Volcano
//   DMLC_ROLE, DMLC_WORKER_ID, DMLC_SERVER_ID, DMLC_PS_ROOT_URI, DMLC_PS_ROOT_PORT
//                                   MXNet, BytePS, ps-lite: the scheduler, whom all know, is server
//                                   0, and their server i is server i + 1
//   RANK                            torchrun; workers only
//
// INVALID_ARGUMENT: names the variable; also where it gives the process another role than `program`
// has. docs/operations.md (Places from the environment) tells users.
absl::StatusOr<EnvironmentPlace> PlaceFromEnvironment(
    PlaceRole program, const EnvironmentLookup& look_up = LookUpEnvironment);

}  // namespace leeway
