#include "common/object_store/credential_places.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/object_store/profile.h"
#include "common/object_store/temporary_credentials.h"
#include "common/printable.h"
#include "common/status.h"

namespace leeway {
namespace {

// Returns the credentials in the environment variables, or empty ones if these are not set.
Credentials InEnvironment(const EnvironmentLookup& look_up) {
  const auto id = look_up("AWS_ACCESS_KEY_ID"), secret = look_up("AWS_SECRET_ACCESS_KEY");
  if (!id || !secret) return {};
  return {*id, *secret, look_up("AWS_SESSION_TOKEN").value_or("")};
}

std::string CredentialsPath(const EnvironmentLookup& look_up) {
  return ProfilePath(look_up, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
}

absl::StatusOr<Credentials> InProfile(const EnvironmentLookup& look_up) {
  ASSIGN_OR_RETURN(auto found, ReadProfile(CredentialsPath(look_up), ProfileName(look_up)));
  const Credentials credentials{found["aws_access_key_id"], found["aws_secret_access_key"],
                                found["aws_session_token"]};
  const bool whole = !credentials.access_key_id.empty() && !credentials.secret_access_key.empty();
  return whole ? credentials : Credentials();
}

// Returns the credentials in the environment, or else in the profile.
absl::StatusOr<Credentials> FindKept(const EnvironmentLookup& look_up) {
  Credentials credentials = InEnvironment(look_up);
  if (!credentials.access_key_id.empty()) return credentials;
  return InProfile(look_up);
}

}  // namespace

absl::StatusOr<CredentialPlace> FindCredentialPlace(const EnvironmentLookup& look_up,
                                                    const std::string& region) {
  Credentials credentials = InEnvironment(look_up);
  if (!credentials.access_key_id.empty()) return credentials;
  ASSIGN_OR_RETURN(const auto identity, FindWebIdentity(look_up, region));
  if (identity) return *identity;
  ASSIGN_OR_RETURN(credentials, InProfile(look_up));
  if (!credentials.access_key_id.empty()) return credentials;
  ASSIGN_OR_RETURN(const auto agent, FindContainerAgent(look_up));
  if (agent) return *agent;
  return absl::InvalidArgumentError(absl::StrCat(
      "no credentials for the object store: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
      "AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or put them into the profile [",
      ProfileName(look_up), "] (AWS_PROFILE) of ", CredentialsPath(look_up),
      "; docs/storage.md lists all sources"));
}

std::unique_ptr<CredentialSource> MakeCredentialSource(const CredentialPlace& place,
                                                       const EnvironmentLookup& look_up,
                                                       Duration stall,
                                                       std::shared_ptr<HttpTransport> transport) {
  if (const auto* identity = std::get_if<WebIdentity>(&place)) {
    const auto ask = [identity = *identity, stall, transport](const std::string& token) {
      return AssumeRole(identity, token, stall, *transport);
    };
    return std::make_unique<TemporaryCredentials>(TemporaryCredentialsOptions{
        .ask = ask,
        .token_file = identity->token_file,
        .what = absl::StrCat("credentials of ", Printable(identity->role),
                             " by AWS_WEB_IDENTITY_TOKEN_FILE")});
  }
  if (const auto* agent = std::get_if<ContainerAgent>(&place)) {
    const auto ask = [agent = *agent, stall, transport](const std::string& token) {
      return AskContainerAgent(agent, token, stall, *transport);
    };
    return std::make_unique<TemporaryCredentials>(TemporaryCredentialsOptions{
        .ask = ask,
        .token_file = agent->token_file,
        .what = absl::StrCat("credentials of this container at ", Printable(agent->url),
                             " by AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")});
  }
  return std::make_unique<KeptCredentials>(std::get<Credentials>(place),
                                           [look_up] { return FindKept(look_up); });
}

}  // namespace leeway
