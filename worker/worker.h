// A worker's whole life: the job from the coordinator, data, model, registration, training,
// leaving.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "client/transport.h"
#include "common/clock.h"
#include "common/rpc/host.h"
#include "worker/device/make_backend.h"
#include "worker/device/placement.h"
#include "worker/device/rank_device.h"

namespace leeway {

struct WorkerOptions {
  // host:port.
  std::string coordinator;
  // How long to look for the coordinator. The job has a limit of its own, but is not known yet.
  Duration start_within = std::chrono::seconds(120);
  // Absent: the next free rank. Only if a worker's data do not depend on its rank.
  std::optional<uint32_t> rank;
  std::string data_dir;
  // The job may read files outside of it, by absolute paths.
  bool absolute_paths = false;
  // What computes stays on these; empty: where the system puts it.
  Processors processors;
  // The process's identity, for messages, and its random name, which tells a retry from a new life.
  std::string host;
  uint32_t pid = 0;
  uint64_t nonce = 0;
  // Workers of one job that have the same may combine their contributions.
  std::string memory_host = HostIdentity();
  // Null for gRPC.
  TransportFactory transport;
  // What a rank computes on.
  BackendMaker make_backend = MakeBackend;
  // For workers.emulate.
  std::function<void(Duration)> sleep = [](Duration d) { std::this_thread::sleep_for(d); };
};

// How a worker ended, and so whether a restart would help.
enum class WorkerExit {
  // Finished.
  kDone,
  // The job was stopped, and this worker with it, in order.
  kStopped,
  // The job or the data are wrong, or training has diverged. A restart would end the same way.
  kPermanent,
  // Its arguments are wrong for this job. The same.
  kUsage,
  // A newer life of the rank exists. This one ends silently.
  kReplaced,
  // Anything else. A new life may succeed.
  kRestart,
};

struct WorkerEnd {
  WorkerExit exit = WorkerExit::kDone;
  // OK for kDone and kStopped.
  absl::Status status;
};

// Runs a worker to its end. If the worker was registered, the coordinator has been told of a
// permanent failure (LEAVE_FAILED).
WorkerEnd RunWorker(const WorkerOptions& options);

// How a registered worker ends with this failure.
WorkerExit ExitOf(const absl::Status& status);

}  // namespace leeway
