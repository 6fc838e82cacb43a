// Converts absl::Status, which Leeway uses, to grpc::Status, which gRPC transmits, and back. Code
// and message stay the same. A mark shows that the service itself refused the call.
//
// The mark is necessary because everything on the way to the service (gRPC's library at both ends,
// proxies) uses the same codes as the service. For example, a reset connection may be reported as
// INTERNAL, and a full buffer as RESOURCE_EXHAUSTED. So a service marks its own refusals (Refuse).
// A status without the mark is not an answer (ResultOf), and the client sends the request again,
// whatever the code is.
#pragma once

#include <string>

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leeway {

// The key of the mark in the trailing metadata of a call that the service itself refused. Its value
// has no meaning.
inline constexpr char kOwnWordKey[] = "leeway-refused";

// Returns the status that ends a refused call, and adds the mark and the retry hint (retry_hint.h)
// to the call's metadata.
grpc::Status Refuse(const absl::Status& status, grpc::ServerContextBase& context);
// Returns the result of the call that used `context`. Call this function after the call has ended.
// If the service itself answered, returns the service's status with its hint. Otherwise returns
// DEADLINE_EXCEEDED, or UNAVAILABLE with a message that names the code.
absl::Status ResultOf(const grpc::Status& status, const grpc::ClientContext& context);

// Returns gRPC's message about a failed connection, rewritten for people. The result has the cause
// and what to check, without the names of gRPC's parts. Other messages are returned unchanged.
std::string InPlainWords(absl::string_view message);

// Converts the status that ends a stream, which is never an answer. All functions of this file make
// messages Printable (common/printable.h), whatever their origin.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace leeway
