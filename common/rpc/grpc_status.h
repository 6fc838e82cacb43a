// absl::Status inside, grpc::Status on the wire: the same code and message, and a mark that tells
// who said it.
//
// The requested service and everything on the way to it (gRPC's library at both ends, proxies) use
// the same codes: a connection that is reset may say INTERNAL, one without room RESOURCE_EXHAUSTED.
// So a service marks what it refuses (Refuse). A status without the mark is no answer at all
// (ResultOf): the request is sent again, whatever the code.
#pragma once

#include <string>

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leeway {

// In the trailing metadata of a call that the service itself has refused; the value says nothing.
inline constexpr char kOwnWordKey[] = "leeway-refused";

// What a call of a service is to be ended with: marked, and with the retry hint (retry_hint.h).
grpc::Status Refuse(const absl::Status& status, grpc::ServerContextBase& context);
// The result of the call that used `context`; call it after the end. If the service itself
// answered, this is its status, with its hint. Otherwise it is DEADLINE_EXCEEDED, or UNAVAILABLE
// with a text that names the code.
absl::Status ResultOf(const grpc::Status& status, const grpc::ClientContext& context);

// What of gRPC's text about a connection that was not made concerns a person: its cause, and what
// to look at, without the names of gRPC's parts. Other texts stay as they are.
std::string InPlainWords(absl::string_view message);

// The same for a stream, whose end is never an answer. As above, texts are Printable
// (common/printable.h) on both sides, whoever wrote them.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace leeway
