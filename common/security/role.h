// The role of a process in a job, and how a certificate states it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "leeway/v1/options.pb.h"

namespace leeway {

struct Caller {
  // Absent if certificates are not required. A caller with the job's token may then make all calls.
  std::optional<v1::Role> role = std::nullopt;
  // Set if a worker's or peer's certificate is for one rank only.
  std::optional<uint32_t> rank = std::nullopt;
  // The trust domain of the certificate. Empty if the caller has no certificate.
  std::string trust_domain = {};
};

// Returns "server", "worker", "launcher", "status" or "peer".
std::string RoleName(v1::Role role);

// A certificate's role is a subject alternative name of kind URI, in the form of a SPIFFE ID
// (spiffe.io, "The SPIFFE Identity"): spiffe://DOMAIN/leeway/ROLE. For a worker or peer that may
// have only one rank, the URI ends in /RANK. Jobs that share an authority must have different
// domains, because a process admits callers of its own domain only.
inline constexpr char kTrustDomain[] = "leeway";
std::string RoleUri(v1::Role role, std::optional<uint32_t> rank = std::nullopt,
                    absl::string_view trust_domain = kTrustDomain);
// Returns INVALID_ARGUMENT unless `trust_domain` is valid, which means that it has at most 255
// lower-case letters, digits, dots, hyphens and underscores. The message begins with `what`.
absl::Status CheckTrustDomain(absl::string_view what, absl::string_view trust_domain);

// Returns the caller whose certificate has these URIs. Returns nothing unless exactly one of the
// URIs has a role.
std::optional<Caller> CallerOf(const std::vector<std::string>& uris);
// Returns a string such as "a worker's certificate for the trust domain 'leeway'" or "a certificate
// without a role".
std::string Described(const Caller& holder);

// Returns the roles that may call a method according to proto/leeway/v1. `method` is the full
// name of a method that exists, such as leeway.v1.Coordinator.StopJob.
std::vector<v1::Role> CallersOf(const std::string& method);

}  // namespace leeway
