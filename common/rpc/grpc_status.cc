#include "common/rpc/grpc_status.h"

#include <chrono>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/printable.h"
#include "common/retry_hint.h"

namespace leeway {

// Both enumerations have the canonical codes 0 to 16, so a code can be cast.
static_assert(static_cast<int>(absl::StatusCode::kUnauthenticated) ==
              static_cast<int>(grpc::StatusCode::UNAUTHENTICATED));

namespace {

// Converts the status. A code that gRPC does not define becomes UNKNOWN.
absl::Status FromGrpc(const grpc::Status& status) {
  const int code = static_cast<int>(status.error_code());
  const bool known = code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return absl::Status(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
                      Printable(status.error_message()));
}

// Returns the status with the retry hint that came with a refusal, if there is one.
absl::Status WithHintOf(const absl::Status& status, const grpc::ClientContext& context) {
  const auto& trailer = context.GetServerTrailingMetadata();
  const auto found = trailer.find(kRetryPushbackKey);
  if (found == trailer.end()) return status;
  const absl::string_view text(found->second.data(), found->second.size());
  uint32_t count = 0;
  if (!absl::SimpleAtoi(text, &count)) return status;
  return WithRetryHint(status, std::chrono::milliseconds(count));
}

// A message of gRPC or OpenSSL, and what it means. The message is about a peer that answered, but
// did not agree on a connection.
struct Disagreement {
  absl::string_view told;
  absl::string_view meaning;
};
constexpr Disagreement kDisagreements[] = {
    {"certificate verify failed",
     "the certificate there is not valid now, or not signed by this process's authority "
     "(--tls-dir)"},
    {"wrong version number",
     "the process there does not use TLS: a server without certificates, or another program"},
    {"alert", "the process there refuses this process's certificate (--tls-dir)"},
    {"Socket closed",
     "the process there hung up at once: it may require TLS, or other certificates (--tls-dir)"},
    {"Connection reset by peer",
     "the process there hung up at once: it may require TLS, or other certificates (--tls-dir)"},
};

std::string NotConnected(absl::string_view cause) {
  // Leeway's own verifier has already explained the failure.
  if (absl::StartsWith(cause, "the certificate at this address")) return std::string(cause);
  for (const Disagreement& each : kDisagreements) {
    if (absl::StrContains(cause, each.told)) return absl::StrCat(each.meaning, " (", cause, ")");
  }
  return absl::StrCat("no process answers there (", cause, ")");
}

}  // namespace

std::string InPlainWords(absl::string_view message) {
  const size_t colon = message.rfind(": ");
  const absl::string_view cause =
      colon == absl::string_view::npos ? message : message.substr(colon + 2);
  if (absl::StartsWith(message, "DNS resolution failed")) {
    return absl::StrCat("the host name was not found (", cause, ")");
  }
  if (absl::StartsWith(message, "failed to connect to all addresses")) return NotConnected(cause);
  return std::string(message);
}

namespace {

absl::Status SaidOnTheWay(const absl::Status& status) {
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    return absl::Status(status.code(), InPlainWords(status.message()));
  }
  if (absl::IsUnimplemented(status)) {
    return absl::UnavailableError(
        "the process there does not know this call: is this the address of server 0, and do both "
        "builds use the same protocol?");
  }
  return absl::UnavailableError(
      absl::StrCat("the connection failed with ", absl::StatusCodeToString(status.code()),
                   status.message().empty() ? "" : ": ", status.message()));
}

}  // namespace

grpc::Status Refuse(const absl::Status& status, grpc::ServerContextBase& context) {
  context.AddTrailingMetadata(kOwnWordKey, "1");
  if (const auto hint = RetryHintOf(status)) {
    context.AddTrailingMetadata(kRetryPushbackKey, std::to_string(hint->count()));
  }
  return ToGrpc(status);
}

absl::Status ResultOf(const grpc::Status& status, const grpc::ClientContext& context) {
  if (status.ok()) return absl::OkStatus();
  const bool own_word = context.GetServerTrailingMetadata().count(kOwnWordKey) > 0;
  return own_word ? WithHintOf(FromGrpc(status), context) : SaidOnTheWay(FromGrpc(status));
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), Printable(status.message()));
}

}  // namespace leeway
