// Many workers in one process: each a small state machine with its own identity, its own connection
// to each server and a stream on it; all of them on a few threads and completion queues. To the
// servers they are workers like any other; they compute nothing and keep no weights.
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
  // Of the model.
  uint64_t floats = 1 << 14;
  uint32_t threads = 2;
};

// What a run of clocks came to.
struct LightRound {
  double seconds = 0;
  // Blocks that were pushed and pulled.
  uint64_t requests = 0;
  // Answers "still waiting, send again".
  uint64_t repeated = 0;
  // By worker and clock: from its own contribution until it had all its blocks.
  std::vector<double> answer_seconds;
  // The same from the last contribution to that clock, whoever sent it: what sync mode adds.
  std::vector<double> release_seconds;
};

class LightWorker;

// The phases are called in this order, on one thread; each ends when every worker has done its
// part, or with the first error. Lives until its process ends.
class LightWorkers {
 public:
  explicit LightWorkers(const LightOptions& options);
  ~LightWorkers() = delete;

  // Every worker has a rank, the next free one, and the job has begun.
  absl::Status Register();
  // Every worker has its streams; the first has brought the weights.
  absl::Status Connect();
  // Every worker exchanges the whole model so many times.
  absl::Status Run(uint64_t clocks, LightRound* round);
  absl::Status Leave();

  // ---- for its workers
  v1::Coordinator::Stub& coordinator(uint32_t worker) {
    return *coordinators_[worker % coordinators_.size()];
  }
  // What every contribution says, and the first weights.
  const std::vector<float>& values() const { return values_; }
  void Done(const absl::Status& status) EXCLUDES(mutex_);

 private:
  // Calls it for each of the first `count` workers, on its own queue's thread, the next one `apart`
  // from the last, and waits.
  absl::Status ForEach(uint32_t count, void (LightWorker::*begin)(),
                       Duration apart = Duration::zero()) EXCLUDES(mutex_);
  // A heartbeat of every worker each kBeatEvery, in slices.
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
