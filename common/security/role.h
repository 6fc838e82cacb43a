// The role of a process in a job, and how a certificate names it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "leeway/v1/options.pb.h"

namespace leeway {

// The caller of a method.
struct Caller {
  // Absent if certificates are not required: a caller with the job's token may then make all calls.
  std::optional<v1::Role> role = std::nullopt;
  // Set if a worker's certificate is for one rank only.
  std::optional<uint32_t> rank = std::nullopt;
  // The certificate's trust domain; empty if the caller has no certificate.
  std::string trust_domain = {};
};

// "server", "worker", "launcher", "status".
std::string RoleName(v1::Role role);

// A certificate's role is a subject alternative name of kind URI, in the form of a SPIFFE ID
// (spiffe.io, "The SPIFFE Identity"): spiffe://DOMAIN/leeway/ROLE. For a worker that may have one
// rank only it is spiffe://DOMAIN/leeway/worker/RANK. Jobs that share an authority have different
// domains: a process lets in its own domain only.
inline constexpr char kTrustDomain[] = "leeway";
std::string RoleUri(v1::Role role, std::optional<uint32_t> rank = std::nullopt,
                    absl::string_view trust_domain = kTrustDomain);
// INVALID_ARGUMENT, beginning with `what`, unless `trust_domain` is valid: at most 255 lower-case
// letters, digits, dots, hyphens and underscores.
absl::Status CheckTrustDomain(absl::string_view what, absl::string_view trust_domain);

// Returns nothing unless exactly one of a certificate's URIs names a role.
std::optional<Caller> CallerOf(const std::vector<std::string>& uris);
// Returns a text such as "a worker's certificate for the trust domain 'leeway'" or "a certificate
// without a role".
std::string Described(const Caller& holder);

// Returns the roles whose certificates may call a method, as the contract says (proto/leeway/v1).
// `method` must exist: leeway.v1.Coordinator.StopJob.
std::vector<v1::Role> CallersOf(const std::string& method);

}  // namespace leeway
