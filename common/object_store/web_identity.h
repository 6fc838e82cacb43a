// Temporary credentials of a role, in exchange for a token that identifies this process. The
// request is STS's AssumeRoleWithWebIdentity. EKS calls this feature IAM roles for service
// accounts. docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/environment.h"
#include "common/object_store/address.h"
#include "common/object_store/http.h"
#include "common/object_store/temporary_credentials.h"

namespace leeway {

struct WebIdentity {
  std::string token_file;
  std::string role;
  // The name under which the role's sessions are listed.
  std::string session;
  Endpoint endpoint;
};

// Reads AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN and AWS_ROLE_SESSION_NAME (default:
// leeway-HOSTNAME). STS is at AWS_ENDPOINT_URL_STS, AWS_ENDPOINT_URL or Amazon's endpoint for
// `region`; with AWS_STS_REGIONAL_ENDPOINTS=legacy it is Amazon's global one. Returns nothing if no
// token file is set. Returns INVALID_ARGUMENT, naming the variable, if a value is missing or not
// valid.
absl::StatusOr<std::optional<WebIdentity>> FindWebIdentity(const EnvironmentLookup& look_up,
                                                           const std::string& region);

// Asks STS once. The request fails if no byte arrives for `stall`. Errors name the role and the
// token's file, and say what to do. After PERMISSION_DENIED, UNAUTHENTICATED and
// FAILED_PRECONDITION the user has to correct the settings. UNAVAILABLE may be temporary.
absl::StatusOr<ExpiringCredentials> AssumeRole(const WebIdentity& identity,
                                               const std::string& token, Duration stall,
                                               HttpTransport& transport);

}  // namespace leeway
