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
  // `coordinator`: HOST:PORT of server 0; empty: as the environment says. The first read waits for
  // a job that has weights, for `start_seconds`.
  static absl::StatusOr<std::unique_ptr<Watch>> Open(std::string coordinator, double start_seconds);
  virtual ~Watch() = default;

  // Reads all weights as they are now. Each block is what an update has left; neighbours may be
  // some updates apart, where the servers go on meanwhile. What has not changed since the last read
  // is not sent again. False if the deadline came first: call again, and until then leave weights()
  // alone. ALREADY_EXISTS: the job is over, or its last update was
  // read before and nobody serves it any more. UNAVAILABLE: nobody answers, or the
  // job has no weights yet; another read may succeed.
  virtual absl::StatusOr<bool> Read(Time deadline) = 0;

  // What the last Read() has found; empty before. The vector is in the same place until the end.
  virtual std::vector<JobTensor> tensors() const = 0;
  virtual std::span<const float> weights() const = 0;
  // Updates that have been applied to the block that has least of them.
  virtual uint64_t version() const = 0;
};

}  // namespace leeway
