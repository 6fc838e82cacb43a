// The sources of credentials, in the order in which AWS's own clients look at them.
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

// Credentials that were found, or the service that issues them.
using CredentialPlace = std::variant<Credentials, WebIdentity, ContainerAgent>;

// Returns the first of these that exists: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
// AWS_SESSION_TOKEN; a web identity; the profile AWS_PROFILE (default) of
// AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials); the agent on a container's host. Sends no
// request. Returns INVALID_ARGUMENT, naming the sources, if none exists.
absl::StatusOr<CredentialPlace> FindCredentialPlace(const EnvironmentLookup& look_up,
                                                    const std::string& region);

// Makes the source of credentials for a place. Never returns null. Keeps `look_up`, to read new
// credentials from the same place later. `stall` is the limit for requests to a service (http.h).
// Sends no request yet.
std::unique_ptr<CredentialSource> MakeCredentialSource(const CredentialPlace& place,
                                                       const EnvironmentLookup& look_up,
                                                       Duration stall,
                                                       std::shared_ptr<HttpTransport> transport);

}  // namespace leeway
