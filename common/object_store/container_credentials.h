// Temporary credentials from the agent that runs on a container's host: EKS Pod Identity and ECS.
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
  // The request's header Authorization has the content of the file, or `token` if there is no file.
  // If both are empty, the request has no such header.
  std::string token_file = {};
  std::string token = {};
};

// Reads AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or AWS_CONTAINER_CREDENTIALS_FULL_URI, with
// AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE or AWS_CONTAINER_AUTHORIZATION_TOKEN. Returns nothing if
// neither URI is set. Returns INVALID_ARGUMENT for a URI to which the token must not be sent: plain
// HTTP to any host except this one and the known agents.
absl::StatusOr<std::optional<ContainerAgent>> FindContainerAgent(const EnvironmentLookup& look_up);

// Asks the agent once. The request fails if no byte arrives for `stall`. Errors name the agent and
// say what to do. After PERMISSION_DENIED and FAILED_PRECONDITION the user has to correct the
// settings. UNAVAILABLE may be temporary.
absl::StatusOr<ExpiringCredentials> AskContainerAgent(const ContainerAgent& agent,
                                                      const std::string& token, Duration stall,
                                                      HttpTransport& transport);

}  // namespace leeway
