// Decides whether a server answers a call, by the job's token and the role in the caller's
// certificate.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/security/kept_token.h"
#include "common/security/role.h"

namespace leeway {

// What a connection and a call prove about the caller.
struct CallerFacts {
  // The call came through the server's unix socket, which only lets in the server's own user and
  // root. Both could read the server's key anyway. The socket is for the data plane: what workers
  // may call.
  bool local = false;
  // The subject alternative names of kind URI in a verified certificate.
  std::vector<std::string> uris;
  // The call's `authorization` metadata; empty if the call has none.
  absl::string_view authorization;
};

// Constant after construction except for the tokens, whose files may change. Thread-safe.
class CallGate {
 public:
  struct Options {
    // If true, each caller's certificate is verified (mutual TLS), and its role counts.
    bool certificates = false;
    // If not empty, each certificate must belong to this trust domain.
    std::string trust_domain = {};
    // If not empty, each call must bring this token.
    KeptToken token = {};
    // If not empty, a call that brings this token instead may read the job's status.
    KeptToken status_token = {};
  };

  // Without any of the options all callers may make all calls.
  explicit CallGate(Options options) : options_(std::move(options)) {}

  // Admits a call of `method`. `callers`: the roles that may call it (CallersOf). UNAUTHENTICATED:
  // the caller has not proved its identity. PERMISSION_DENIED: it has, but it may not call the
  // method.
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
