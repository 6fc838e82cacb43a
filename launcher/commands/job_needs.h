// Memory that the processes of a job take: the arithmetic that `leeway plan` shows and `leeway
// kubernetes` makes limits of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/blocks.h"
#include "common/codec/plan.h"
#include "launcher/commands/checked_job.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// What a server has to begin with, all of its shards together.
struct ServerShare {
  uint64_t blocks = 0, elements = 0;
  // Elements of which it keeps a replica.
  uint64_t replicated = 0;
  // Bytes for compressed answers, of both.
  uint64_t replies = 0;
};
std::vector<ServerShare> SharesOf(const v1::TrainingJob& job, const BlockLayout& layout,
                                  const CodecPlan& codecs);
// Bytes of a share with so many optimizer slots.
uint64_t MemoryOf(const ServerShare& share, uint64_t slots);

// Whether workers.device says a GPU; `auto` does not.
bool OnGpu(const v1::TrainingJob& job);

// Of the host's memory, in bytes.
struct WorkerNeeds {
  // Vectors of the model's size, and what they take.
  uint64_t vectors = 0;
  uint64_t model = 0;
  // Of a batch; on a GPU they are not in this memory.
  uint64_t activations = 0;
  uint64_t data = 0;

  uint64_t all() const { return model + activations + data; }
};
// With batches of so many examples.
absl::StatusOr<WorkerNeeds> NeedsOfWorker(const v1::TrainingJob& job, const CheckedJob& checked,
                                          const CodecPlan& codecs, size_t examples);

// Bytes that any server and any worker may come to need.
struct ProcessBytes {
  // The largest server, with the contributions that wait there, when one has left or as many as
  // may: the others have its shards.
  uint64_t server = 0;
  // Worker 0, which evaluates.
  uint64_t worker = 0;
};
absl::StatusOr<ProcessBytes> MostBytes(const v1::TrainingJob& job, const CheckedJob& checked,
                                       const std::string& data_dir);

}  // namespace leeway
