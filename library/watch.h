// Reads the weights of a running job without taking part in the job. The reader may run anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "library/job.h"

namespace leeway {

// Used by one thread at a time.
class Watch {
 public:
  // Opens a watch. `coordinator` is HOST:PORT of server 0. If empty, the environment specifies it.
  // The first read waits up to `start_seconds` for a job that has weights.
  static absl::StatusOr<std::unique_ptr<Watch>> Open(std::string coordinator, double start_seconds);
  virtual ~Watch() = default;

  // Reads all weights as they are now. Each block holds the result of one update, but different
  // blocks may be some updates apart, because the servers go on meanwhile. If a block has not
  // changed since the last read, the servers do not send it again. Returns false if the deadline
  // came first; then call Read again, and do not use weights() before it succeeds. Returns
  // ALREADY_EXISTS if the job is over, or if the last update was read and no server answers any
  // more. Returns UNAVAILABLE if no server answers, or if the job has no weights yet; a later read
  // may succeed.
  virtual absl::StatusOr<bool> Read(Time deadline) = 0;

  // The tensors and weights of the last Read(). Both are empty before the first one. The weights
  // stay at the same address as long as the watch exists.
  virtual std::vector<JobTensor> tensors() const = 0;
  virtual std::span<const float> weights() const = 0;
  // The smallest version of all blocks: the number of updates that were applied to a block.
  virtual uint64_t version() const = 0;
};

}  // namespace leeway
