// Reads the weights of a running job, from anywhere, and takes no part in it.
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

// One thread at a time.
class Watch {
 public:
  // Opens a watch. `coordinator` is HOST:PORT of server 0. If empty, the environment specifies it.
  // The first read waits up to `start_seconds` for a job that has weights.
  static absl::StatusOr<std::unique_ptr<Watch>> Open(std::string coordinator, double start_seconds);
  virtual ~Watch() = default;

  // Reads all weights as they are now. Each block holds the result of one update. While the servers
  // go on, neighbouring blocks may be some updates apart. The servers do not send blocks again that
  // have not changed since the last read. Returns false if the deadline came first; call Read again
  // then, and until it succeeds do not use weights(). Returns ALREADY_EXISTS if the job is over, or
  // if its last update was read and no server answers any more. Returns UNAVAILABLE if no server
  // answers, or if the job has no weights yet; another read may succeed.
  virtual absl::StatusOr<bool> Read(Time deadline) = 0;

  // The tensors and weights of the last Read(). Both are empty before the first one. The memory of
  // the weights stays in place as long as the watch.
  virtual std::vector<JobTensor> tensors() const = 0;
  virtual std::span<const float> weights() const = 0;
  // The number of updates of the block that has had the fewest.
  virtual uint64_t version() const = 0;
};

}  // namespace leeway
