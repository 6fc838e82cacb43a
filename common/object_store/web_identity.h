// Temporary credentials of a role for a token that says who this process is: STS's
// AssumeRoleWithWebIdentity, which EKS calls IAM roles for service accounts.
// docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html
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
  // The role's sessions are listed by it.
  std::string session;
  // STS's.
  Endpoint endpoint;
};

// AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN, AWS_ROLE_SESSION_NAME (leeway-HOSTNAME). STS is at
// AWS_ENDPOINT_URL_STS, AWS_ENDPOINT_URL or Amazon's, that of `region` unless
// AWS_STS_REGIONAL_ENDPOINTS is legacy. Nothing without a token file; INVALID_ARGUMENT, naming the
// variable, for a value that is missing or none.
absl::StatusOr<std::optional<WebIdentity>> FindWebIdentity(const EnvironmentLookup& look_up,
                                                           const std::string& region);

// Asks STS once, which has failed after so long without a byte. Errors name the role, the token's
// file, and what to do: PERMISSION_DENIED, UNAUTHENTICATED and FAILED_PRECONDITION stay wrong,
// UNAVAILABLE may pass.
absl::StatusOr<ExpiringCredentials> AssumeRole(const WebIdentity& identity,
                                               const std::string& token, Duration stall,
                                               HttpTransport& transport);

}  // namespace leeway
