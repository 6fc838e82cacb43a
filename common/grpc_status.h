// absl::Status inside, grpc::Status on the wire: the same code and message.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace leeway {

grpc::Status ToGrpc(const absl::Status& status);
// A code that gRPC does not know becomes UNKNOWN.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace leeway
