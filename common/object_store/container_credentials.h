// Temporary credentials from the agent beside a container: EKS Pod Identity and ECS.
// docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/environment.h"
#include "common/object_store/http.h"
#include "common/object_store/temporary_credentials.h"

namespace leeway {

struct ContainerAgent {
  std::string url = {};
  // The header Authorization gets the content of the file, or else the text of `token`. Without
  // both the request has no such header.
  std::string token_file = {};
  std::string token = {};
};

// Reads AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or AWS_CONTAINER_CREDENTIALS_FULL_URI, with
// AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE or AWS_CONTAINER_AUTHORIZATION_TOKEN. Returns nothing
// without a URI. INVALID_ARGUMENT for a URI to which the token must not go: plain HTTP to a host
// other than this one and the agents.
absl::StatusOr<std::optional<ContainerAgent>> FindContainerAgent(const EnvironmentLookup& look_up);

// Asks the agent once. The request fails after `stall` without a byte. Errors name the agent and
// say what to do. PERMISSION_DENIED and FAILED_PRECONDITION need a correction; UNAVAILABLE may
// pass.
absl::StatusOr<ExpiringCredentials> AskContainerAgent(const ContainerAgent& agent,
                                                      const std::string& token, Duration stall,
                                                      HttpTransport& transport);

}  // namespace leeway
