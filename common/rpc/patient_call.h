// A unary call that is repeated until the service itself answers.
#pragma once

#include <functional>

#include <grpcpp/client_context.h>

#include "absl/status/status.h"
#include "common/clock.h"

namespace leeway {

struct PatientCall {
  // The time limits for one attempt, and for all attempts including the pauses between them.
  Duration attempt_max;
  Duration total;
  // Waits before the next attempt. Returns false if there must be no further attempt.
  std::function<bool(Duration)> pause;
};

// Sends a request that may be repeated without harm. `attempt` makes one call with the context. The
// call waits until there is a connection. Returns the result of the last attempt.
absl::Status CallPatiently(const PatientCall& patience,
                           const std::function<grpc::Status(grpc::ClientContext&)>& attempt);

}  // namespace leeway
