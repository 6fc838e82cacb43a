// The places that credentials come from, in the order in which AWS's own clients look at them.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "common/environment.h"
#include "common/object_store/container_credentials.h"
#include "common/object_store/credential_source.h"
#include "common/object_store/web_identity.h"

namespace leeway {

// Credentials that lie there, or the service that gives them.
using CredentialPlace = std::variant<Credentials, WebIdentity, ContainerAgent>;

// The first of these that there is: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; a
// web identity; the profile AWS_PROFILE (default) of AWS_SHARED_CREDENTIALS_FILE
// (~/.aws/credentials); the agent beside a container. Asks nobody. INVALID_ARGUMENT, naming what
// was looked at, if there is none.
absl::StatusOr<CredentialPlace> FindCredentialPlace(const EnvironmentLookup& look_up,
                                                    const std::string& region);

// Never null. `look_up` is kept, for credentials that are left in the same place later; `stall` is
// a service's request's (http.h). Asks nobody yet.
std::unique_ptr<CredentialSource> MakeCredentialSource(const CredentialPlace& place,
                                                       const EnvironmentLookup& look_up,
                                                       Duration stall,
                                                       std::shared_ptr<HttpTransport> transport);

}  // namespace leeway
