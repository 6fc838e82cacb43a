// Reads the weights of a running job, from anywhere, and takes no part in it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/library/job.h"
#include "common/clock.h"

namespace leeway {

// One thread at a time.
class Watch {
 public:
  // `coordinator` is HOST:PORT of server 0. Empty: the environment says it. The first read waits up
  // to `start_seconds` for a job that has weights.
  static absl::StatusOr<std::unique_ptr<Watch>> Open(std::string coordinator, double start_seconds);
  virtual ~Watch() = default;

  // Reads all weights as they are now. Each block holds the result of one update. While the servers
  // go on, neighbouring blocks may be some updates apart. What has not changed since the last read
  // is not sent again. False if the deadline came first: call again, and until then do not use
  // weights(). ALREADY_EXISTS: the job is over, or its last update was read and nobody serves it
  // any more. UNAVAILABLE: nobody answers, or the job has no weights yet; another read may succeed.
  virtual absl::StatusOr<bool> Read(Time deadline) = 0;

  // What the last Read() has found. Empty before it. The vector stays in place until the end.
  virtual std::vector<JobTensor> tensors() const = 0;
  virtual std::span<const float> weights() const = 0;
  // The number of updates of the block that has had the fewest.
  virtual uint64_t version() const = 0;
};

}  // namespace leeway
