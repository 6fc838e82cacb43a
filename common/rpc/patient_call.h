// A unary call that is repeated until the other side itself answers.
#pragma once

#include <functional>

#include <grpcpp/client_context.h>

#include "absl/status/status.h"
#include "common/clock.h"

namespace leeway {

struct PatientCall {
  // Time limits: for one attempt, and for all attempts with the pauses between them.
  Duration attempt_max;
  Duration total;
  // Waits before the next attempt. Returns false if no attempt is to follow.
  std::function<bool(Duration)> pause;
};

// Sends a request that is harmless when repeated. `attempt` makes one call with the context, which
// waits for the connection. Returns the result of the last attempt.
absl::Status CallPatiently(const PatientCall& patience,
                           const std::function<grpc::Status(grpc::ClientContext&)>& attempt);

}  // namespace leeway
