// What a process is in a job, and how certificates say so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "leeway/v1/options.pb.h"

namespace leeway {

// Who makes a call.
struct Caller {
  // Absent where nobody's certificate is asked for: whoever has the job's token may do everything.
  std::optional<v1::Role> role = std::nullopt;
  // Of a worker whose certificate is for one rank only.
  std::optional<uint32_t> rank = std::nullopt;
  // Of the certificate; empty where the caller has none.
  std::string trust_domain = {};
};

// "server", "worker", "launcher", "status".
std::string RoleName(v1::Role role);

// A certificate's role is a subject alternative name of the kind URI, in the form of a SPIFFE ID
// (spiffe.io, "The SPIFFE Identity"): spiffe://DOMAIN/leeway/ROLE, and for a worker that may have
// one rank only spiffe://DOMAIN/leeway/worker/RANK. The domain is the job's own where several share
// an authority: a process lets in its own only.
inline constexpr char kTrustDomain[] = "leeway";
std::string RoleUri(v1::Role role, std::optional<uint32_t> rank = std::nullopt,
                    absl::string_view trust_domain = kTrustDomain);
// INVALID_ARGUMENT, beginning with `what`, unless it is one: at most 255 small letters, digits,
// dots, hyphens and underscores.
absl::Status CheckTrustDomain(absl::string_view what, absl::string_view trust_domain);

// Nothing, unless exactly one of a certificate's URIs names a role.
std::optional<Caller> CallerOf(const std::vector<std::string>& uris);
// "a worker's of the trust domain 'leeway'", "one without a role".
std::string Described(const Caller& holder);

// The roles whose certificates may call a method, as the contract says (proto/leeway/v1).
// `method`: leeway.v1.Coordinator.StopJob. It must be one.
std::vector<v1::Role> CallersOf(const std::string& method);

}  // namespace leeway
