// Whether a server answers a call: by the job's token, and by the role in the caller's certificate.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/security/kept_token.h"
#include "common/security/role.h"

namespace leeway {

// What a connection and a call say of who calls.
struct CallerFacts {
  // Through the server's unix socket, which lets in the server's own user and root only. They could
  // read its key. The socket is for the data plane: what workers may call.
  bool local = false;
  // Of a verified certificate: its subject alternative names of the kind URI.
  std::vector<std::string> uris;
  // The call's `authorization`; empty if it has none.
  absl::string_view authorization;
};

// Constant after construction, but for the tokens, whose files may change. Thread-safe.
class CallGate {
 public:
  struct Options {
    // Every caller's certificate is verified (mutual TLS), and its role counts.
    bool certificates = false;
    // If not empty, each of them must be of it.
    std::string trust_domain = {};
    // If not empty, every call must bring it.
    KeptToken token = {};
    // If not empty, a call that brings this one instead may read the job's status.
    KeptToken status_token = {};
  };

  // Without any of the options everybody may do everything.
  explicit CallGate(Options options) : options_(std::move(options)) {}

  // `callers`: the roles that may call `method` (CallersOf). UNAUTHENTICATED: who calls is not
  // proved. PERMISSION_DENIED: it is proved, and may not.
  absl::StatusOr<Caller> Admit(const CallerFacts& facts, const std::vector<v1::Role>& callers,
                               absl::string_view method) const;

 private:
  absl::StatusOr<Caller> Identify(const CallerFacts& facts) const;
  absl::StatusOr<Caller> Certified(const std::vector<std::string>& uris) const;

  const Options options_;
};

// PERMISSION_DENIED if the caller's certificate is for another rank.
absl::Status CheckRank(const Caller& caller, uint32_t rank);

}  // namespace leeway
