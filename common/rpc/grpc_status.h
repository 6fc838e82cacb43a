// Converts absl::Status, used inside Leeway, to grpc::Status on the wire and back. Code and message
// stay the same; a mark says that the service itself refused the call.
//
// The service and everything on the way to it (gRPC's library at both ends, proxies) use the same
// codes: a reset connection may report INTERNAL, and one without room RESOURCE_EXHAUSTED. So a
// service marks its own refusals (Refuse). A status without the mark is not an answer (ResultOf):
// the client sends the request again, whatever the code is.
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
// to its metadata.
grpc::Status Refuse(const absl::Status& status, grpc::ServerContextBase& context);
// Returns the result of the call that used `context`; use it after the call has ended. If the
// service itself answered, the result is its status, with its hint. Otherwise the result is
// DEADLINE_EXCEEDED, or UNAVAILABLE with a text that names the code.
absl::Status ResultOf(const grpc::Status& status, const grpc::ClientContext& context);

// Rewrites gRPC's text about a failed connection for a person: it keeps the cause, says what to
// check, and leaves out the names of gRPC's parts. Other texts stay as they are.
std::string InPlainWords(absl::string_view message);

// Converts the status of a stream, whose end is never an answer. Here and above, texts are made
// Printable (common/printable.h) on both sides, whatever their origin.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace leeway
