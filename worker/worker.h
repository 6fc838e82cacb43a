// The whole life of a worker: it gets the job from the coordinator, loads data, builds the model,
// registers, trains and leaves.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "client/participant/block_holder.h"
#include "client/transport/transport.h"
#include "common/clock.h"
#include "common/rpc/host.h"
#include "worker/device/make_backend.h"
#include "worker/device/placement.h"
#include "worker/device/rank_device.h"

namespace leeway {

struct WorkerOptions {
  // The coordinator's address, HOST:PORT.
  std::string coordinator;
  // How long to look for the coordinator. The job has its own limit for this, but the worker does
  // not know the job yet.
  Duration start_within = std::chrono::seconds(120);
  // The worker's rank. If absent, the worker gets the next free rank. This is allowed only if a
  // worker's data does not depend on its rank.
  std::optional<uint32_t> rank;
  std::string data_dir;
  // True if the job may read files outside of `data_dir`, by absolute paths.
  bool absolute_paths = false;
  // The processors to which the computing threads are restricted. If empty, the operating system
  // chooses.
  Processors processors;
  // The process's identity for messages. The random `nonce` distinguishes a retry from a new life.
  std::string host;
  uint32_t pid = 0;
  uint64_t nonce = 0;
  // Identifies the host. Workers of one job with the same value may combine their contributions.
  std::string memory_host = HostIdentity();
  // Starts the server in this process, for jobs whose workers hold blocks. If null, such a job is
  // refused.
  HolderStarter hold_blocks = nullptr;
  // Makes the transport to the servers. If null, gRPC is used.
  TransportFactory transport;
  // Makes the backend on which a rank computes.
  BackendMaker make_backend = MakeBackend;
  // Sleeps for workers.emulate.
  std::function<void(Duration)> sleep = [](Duration d) { std::this_thread::sleep_for(d); };
};

// How a worker ended. It decides whether a restart would help.
enum class WorkerExit {
  // The worker has finished.
  kDone,
  // The job was stopped, and this worker stopped with it, without an error.
  kStopped,
  // The job or the data is wrong, or training has diverged. A restart would end in the same way.
  kPermanent,
  // The worker's arguments are wrong for this job. A restart would end in the same way.
  kUsage,
  // A newer life of the rank exists. This life ends without a message to the coordinator.
  kReplaced,
  // Any other failure. A restart may succeed.
  kRestart,
};

struct WorkerEnd {
  WorkerExit exit = WorkerExit::kDone;
  // The error. OK for kDone and kStopped.
  absl::Status status;
};

// Runs a worker to its end. A registered worker that fails permanently reports its failure to the
// coordinator (LEAVE_FAILED).
WorkerEnd RunWorker(const WorkerOptions& options);

// Returns how a registered worker ends after this failure.
WorkerExit ExitOf(const absl::Status& status);

}  // namespace leeway
