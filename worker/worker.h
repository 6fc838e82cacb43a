// A worker's whole life: the job from the coordinator, data, model, registration, training,
// leaving.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "common/clock.h"
#include "worker/client/transport.h"

namespace leeway {

struct WorkerOptions {
  // host:port.
  std::string coordinator;
  // Absent: the next free one; only where a worker's data do not depend on its rank.
  std::optional<uint32_t> rank;
  std::string data_dir;
  // Who this process is, for messages, and its random name, which tells a retry from a new life.
  std::string host;
  uint32_t pid = 0;
  uint64_t nonce = 0;
  // Null: gRPC.
  TransportFactory transport;
  // For workers.emulate.
  std::function<void(Duration)> sleep = [](Duration d) { std::this_thread::sleep_for(d); };
};

// What a restart would do about the end of a worker.
enum class WorkerExit {
  // Finished, or stopped in order.
  kDone,
  // The job or the data are wrong, or training has diverged: a restart would end the same way.
  kPermanent,
  // A newer life of the rank exists: this one steps back, and says nothing.
  kReplaced,
  // Anything else: a new life may do better.
  kRestart,
};

struct WorkerEnd {
  WorkerExit exit = WorkerExit::kDone;
  // Not OK unless kDone.
  absl::Status status;
};

// Runs a worker to its end. A permanent failure has been told to the coordinator (LEAVE_FAILED)
// where the worker was registered.
WorkerEnd RunWorker(const WorkerOptions& options);

// What the failure of a registered worker means.
WorkerExit ExitOf(const absl::Status& status);

}  // namespace leeway
