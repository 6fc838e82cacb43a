// Many workers in one process. Each is a small state machine with its own identity and its own
// connection and stream to each server. All of them run on a few threads and completion queues.
// Servers cannot tell them from other workers, but they compute nothing and keep no weights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/completion_queue.h>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "leeway/v1/coordinator.grpc.pb.h"

namespace leeway {

struct LightOptions {
  std::string coordinator;
  uint32_t workers = 100;
  // The model's size.
  uint64_t floats = 1 << 14;
  uint32_t threads = 2;
};

// The results of a run of clocks.
struct LightRound {
  double seconds = 0;
  // Blocks that were pushed and pulled.
  uint64_t requests = 0;
  // Answers that say "still waiting, send again".
  uint64_t repeated = 0;
  // By worker and clock: the time from the worker's own contribution until it had all its blocks.
  std::vector<double> answer_seconds;
  // The same time from the last worker's contribution to that clock: what sync mode adds.
  std::vector<double> release_seconds;
};

class LightWorker;

// The phases are called in this order, on one thread. Each ends when every worker has done its
// part, or with the first error. The object lives until its process ends.
class LightWorkers {
 public:
  explicit LightWorkers(const LightOptions& options);
  ~LightWorkers() = delete;

  // Registers every worker at the next free rank, until the job has begun.
  absl::Status Register();
  // Opens every worker's streams. The first worker brings the weights.
  absl::Status Connect();
  // Every worker exchanges the whole model `clocks` times.
  absl::Status Run(uint64_t clocks, LightRound* round);
  absl::Status Leave();

  // ---- for its workers
  v1::Coordinator::Stub& coordinator(uint32_t worker) {
    return *coordinators_[worker % coordinators_.size()];
  }
  // The values of every contribution and of the first weights.
  const std::vector<float>& values() const { return values_; }
  void Done(const absl::Status& status) EXCLUDES(mutex_);

 private:
  // Calls `begin` for each of the first `count` workers, on the worker's own queue's thread,
  // `apart` from one to the next, and waits.
  absl::Status ForEach(uint32_t count, void (LightWorker::*begin)(),
                       Duration apart = Duration::zero()) EXCLUDES(mutex_);
  // Sends a heartbeat of every worker once in each kBeatEvery, slice by slice.
  void BeatFrom(grpc::CompletionQueue* queue, size_t slice);

  const LightOptions options_;
  const std::vector<float> values_;
  std::vector<std::unique_ptr<grpc::CompletionQueue>> queues_;
  std::vector<std::unique_ptr<v1::Coordinator::Stub>> coordinators_;
  std::vector<std::unique_ptr<LightWorker>> workers_;

  Mutex mutex_;
  CondVar changed_;
  uint32_t under_way_ GUARDED_BY(mutex_) = 0;
  absl::Status status_ GUARDED_BY(mutex_);
};

}  // namespace leeway
