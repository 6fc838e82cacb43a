// Temporary credentials of the agent beside a container: EKS Pod Identity and ECS.
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
  // What goes into the header Authorization: the file's content, or else this text; both empty:
  // nothing.
  std::string token_file = {};
  std::string token = {};
};

// AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or AWS_CONTAINER_CREDENTIALS_FULL_URI, with
// AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE or AWS_CONTAINER_AUTHORIZATION_TOKEN. Nothing without a
// URI. INVALID_ARGUMENT for one that the token must not go to: plain HTTP to anything but this host
// and the addresses of the agents.
absl::StatusOr<std::optional<ContainerAgent>> FindContainerAgent(const EnvironmentLookup& look_up);

// Asks the agent once, which has failed after so long without a byte. Errors name the agent and
// what to do: PERMISSION_DENIED and FAILED_PRECONDITION stay wrong, UNAVAILABLE may pass.
absl::StatusOr<ExpiringCredentials> AskContainerAgent(const ContainerAgent& agent,
                                                      const std::string& token, Duration stall,
                                                      HttpTransport& transport);

}  // namespace leeway
