#include "common/security/call_gate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"

namespace leeway {
namespace {

std::string Names(const std::vector<v1::Role>& roles) {
  return absl::StrJoin(roles, " or ",
                       [](std::string* out, v1::Role role) { out->append(RoleName(role)); });
}

}  // namespace

absl::StatusOr<Caller> CallGate::Admit(const CallerFacts& facts,
                                       const std::vector<v1::Role>& callers,
                                       absl::string_view method) const {
  ASSIGN_OR_RETURN(Caller caller, Identify(facts));
  const bool may = !caller.role || std::count(callers.begin(), callers.end(), *caller.role) > 0;
  // Drop the role, because a caller through the socket may be a server that replicates and not only
  // a worker.
  if (may && facts.local && caller.role == v1::ROLE_WORKER) caller.role.reset();
  if (may) return caller;
  return absl::PermissionDeniedError(absl::StrCat(method, " is for the role ", Names(callers),
                                                  "; the caller's role is ",
                                                  RoleName(*caller.role)));
}

absl::StatusOr<Caller> CallGate::Certified(const std::vector<std::string>& uris) const {
  auto caller = CallerOf(uris);
  if (!caller) {
    return absl::UnauthenticatedError(
        "the caller's certificate names no role: it needs one URI like "
        "spiffe://leeway/leeway/worker ('leeway certificates' makes it)");
  }
  if (options_.trust_domain.empty() || caller->trust_domain == options_.trust_domain) {
    return *std::move(caller);
  }
  return absl::PermissionDeniedError(absl::StrCat(
      "the caller's certificate is for the trust domain '", caller->trust_domain,
      "', but this server admits only '", options_.trust_domain, "' (--trust-domain)"));
}

absl::StatusOr<Caller> CallGate::Identify(const CallerFacts& facts) const {
  const bool reads_status = options_.status_token.Matches(facts.authorization);
  if (!reads_status && !options_.token.empty() && !options_.token.Matches(facts.authorization)) {
    return absl::UnauthenticatedError(
        facts.authorization.empty()
            ? "the call has no token: set the job's token in LEEWAY_TOKEN or --token-file"
            : "the call's token is not this job's");
  }
  Caller caller;
  if (options_.certificates) {
    if (facts.local) {
      caller.role = v1::ROLE_WORKER;
    } else {
      ASSIGN_OR_RETURN(caller, Certified(facts.uris));
    }
  }
  // A caller with the status token may only read the status, whatever its certificate allows.
  if (reads_status) caller = {.role = v1::ROLE_STATUS};
  return caller;
}

absl::Status CheckRank(const Caller& caller, uint32_t rank) {
  if (!caller.rank || *caller.rank == rank) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("the caller's certificate is for rank ", *caller.rank, ", not ", rank));
}

}  // namespace leeway
