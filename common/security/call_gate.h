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
  // Whether the call came through the server's unix socket. The socket admits only the server's own
  // user and root, and both could read the server's key anyway. Such a caller may make the calls of
  // the data plane, which are the calls that workers may make.
  bool local = false;
  // The subject alternative names of kind URI in a verified certificate.
  std::vector<std::string> uris;
  // The call's metadata `authorization`, or empty if the call does not have it.
  absl::string_view authorization;
};

// Constant after construction except for the tokens, whose files may change. Thread-safe.
class CallGate {
 public:
  struct Options {
    // Whether each caller has a verified certificate (mutual TLS), whose role limits its calls.
    bool certificates = false;
    // If not empty, each certificate must belong to this trust domain.
    std::string trust_domain = {};
    // If not empty, each call must carry this token.
    KeptToken token = {};
    // If not empty, a call that carries this token instead may read the job's status.
    KeptToken status_token = {};
  };

  // If no option is set, all callers may make all calls.
  explicit CallGate(Options options) : options_(std::move(options)) {}

  // Decides whether a call of `method` is admitted, and returns its caller. `callers` are the roles
  // that may call the method (CallersOf). Returns UNAUTHENTICATED if the caller has not proved its
  // identity, and PERMISSION_DENIED if the caller may not call the method.
  absl::StatusOr<Caller> Admit(const CallerFacts& facts, const std::vector<v1::Role>& callers,
                               absl::string_view method) const;

 private:
  absl::StatusOr<Caller> Identify(const CallerFacts& facts) const;
  absl::StatusOr<Caller> Certified(const std::vector<std::string>& uris) const;

  const Options options_;
};

// Returns PERMISSION_DENIED if the caller's certificate is for another rank.
absl::Status CheckRank(const Caller& caller, uint32_t rank);

}  // namespace leeway
