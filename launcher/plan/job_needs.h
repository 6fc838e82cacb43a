// Computes the memory that the processes of a job need. `leeway plan` shows it, and `leeway
// kubernetes` uses it for the memory limits of the pods.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/blocks.h"
#include "common/codec/plan.h"
#include "launcher/plan/checked_job.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// The blocks that a server has at the start of the job, summed over its shards.
struct ServerShare {
  uint64_t blocks = 0, elements = 0;
  // The number of elements of which the server keeps a replica.
  uint64_t replicated = 0;
  // Bytes for compressed answers about the server's own blocks and about the replicas.
  uint64_t replies = 0;
};
std::vector<ServerShare> SharesOf(const v1::TrainingJob& job, const BlockLayout& layout,
                                  const CodecPlan& codecs);
// Returns the bytes of memory that a share needs if the optimizer has `slots` slots.
uint64_t MemoryOf(const ServerShare& share, uint64_t slots);

// Returns whether workers.device names a GPU. Returns false for `auto`.
bool OnGpu(const v1::TrainingJob& job);

// The host memory that a worker needs.
struct WorkerNeeds {
  // The number of vectors of the model's size (VectorsOfWorker), and the bytes of these vectors.
  uint64_t vectors = 0;
  uint64_t model = 0;
  // Bytes of the exchange with other workers (VectorsOfPeers).
  uint64_t of_peers = 0;
  // Bytes of a batch's activations. 0 on a GPU, because there they are not in the host's memory.
  uint64_t activations = 0;
  // Bytes of the worker's examples and of the batches that it loads ahead.
  uint64_t data = 0;

  uint64_t all() const { return model + of_peers + activations + data; }
};
// Returns the needs of a worker whose batches have `examples` examples.
absl::StatusOr<WorkerNeeds> NeedsOfWorker(const v1::TrainingJob& job, const CheckedJob& checked,
                                          const CodecPlan& codecs, size_t examples);

// The largest number of bytes that a server and a worker may need during the job.
struct ProcessBytes {
  // Bytes of the largest server, including contributions that wait there. The figure assumes that
  // one server has left, or more if the job allows more. Their shards are then on the remaining
  // servers.
  uint64_t server = 0;
  // Bytes of worker 0, which needs the most because it also evaluates.
  uint64_t worker = 0;
};
absl::StatusOr<ProcessBytes> MostBytes(const v1::TrainingJob& job, const CheckedJob& checked,
                                       const std::string& data_dir);

}  // namespace leeway
