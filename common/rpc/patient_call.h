// A unary call that is sent again until the other side itself answers.
#pragma once

#include <functional>

#include <grpcpp/client_context.h>

#include "absl/status/status.h"
#include "common/clock.h"

namespace leeway {

struct PatientCall {
  // Of one attempt, and of all together with the pauses between them.
  Duration attempt_max;
  Duration total;
  // Waits before the next attempt; false: there is to be none.
  std::function<bool(Duration)> pause;
};

// Sends a request that is harmless when repeated. `attempt` makes one call with the context, which
// waits for the connection; the last one's result.
absl::Status CallPatiently(const PatientCall& patience,
                           const std::function<grpc::Status(grpc::ClientContext&)>& attempt);

}  // namespace leeway
