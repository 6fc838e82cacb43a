#include "common/object_store/web_identity.h"

#include <algorithm>
#include <utility>

#include <pugixml.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/object_store/refusal.h"
#include "common/printable.h"
#include "common/status.h"

namespace leeway {
namespace {

using absl::StatusCode;

constexpr char kOperation[] = "AssumeRoleWithWebIdentity";
constexpr std::chrono::seconds kTokenDeadline(15);
constexpr uint64_t kTokenAnswerBytesMax = 1 << 20;
constexpr size_t kSessionMin = 2, kSessionMax = 64;

constexpr char kTrust[] =
    "let the role's trust policy name the token's issuer, service account and audience";
constexpr char kProvider[] =
    "the role's account must have an identity provider for the token's issuer and audience";
constexpr Meaning kTokenErrors[] = {
    {"AccessDenied", StatusCode::kPermissionDenied, kTrust},
    {"ExpiredTokenException", StatusCode::kUnauthenticated,
     "the token has expired: check what renews its file, and this host's clock"},
    {"InvalidIdentityToken", StatusCode::kUnauthenticated, kProvider},
    {"IDPRejectedClaim", StatusCode::kPermissionDenied, kProvider},
    {"ValidationError", StatusCode::kFailedPrecondition,
     "check AWS_ROLE_ARN, AWS_ROLE_SESSION_NAME and the token"},
    {"RegionDisabledException", StatusCode::kFailedPrecondition,
     "activate STS in this region, or set AWS_STS_REGIONAL_ENDPOINTS=legacy"},
    // STS returns these errors with status 400, although they are temporary.
    {"IDPCommunicationError", StatusCode::kUnavailable, ""},
    {"Throttling", StatusCode::kUnavailable, ""},
    {"ThrottlingException", StatusCode::kUnavailable, ""},
    {"RequestLimitExceeded", StatusCode::kUnavailable, ""},
};

Meaning TokenErrorMeaning(int status, const std::string& name) {
  if (const Meaning* known = FindMeaning(kTokenErrors, name)) return *known;
  if (status >= 500 || status == 429 || status == 408) return {"", StatusCode::kUnavailable, ""};
  if (status == 401 || status == 403) return {"", StatusCode::kPermissionDenied, kTrust};
  return {"", StatusCode::kFailedPrecondition, "check AWS_ENDPOINT_URL_STS and AWS_ROLE_ARN"};
}

absl::Status RefusedByTokenService(const HttpAnswer& answer) {
  pugi::xml_document document;
  document.load_buffer(answer.body.data(), answer.body.size());
  const pugi::xml_node error = document.child("ErrorResponse").child("Error");
  const std::string name = Printable(error.child_value("Code"), kWordBytesMax);
  const std::string message = Printable(error.child_value("Message"));
  const Meaning meaning = TokenErrorMeaning(answer.status, name);
  return absl::Status(meaning.code, RefusalText(answer.status, name, message, meaning.advice));
}

// Parses the answer. Errors do not quote it, because it may contain a secret.
absl::StatusOr<ExpiringCredentials> ParseTokenAnswer(const std::string& body) {
  pugi::xml_document document;
  document.load_buffer(body.data(), body.size());
  const pugi::xml_node found = document.child("AssumeRoleWithWebIdentityResponse")
                                   .child("AssumeRoleWithWebIdentityResult")
                                   .child("Credentials");
  ExpiringCredentials given{.credentials = {found.child_value("AccessKeyId"),
                                            found.child_value("SecretAccessKey"),
                                            found.child_value("SessionToken")}};
  std::string why;
  const bool whole =
      !given.credentials.access_key_id.empty() && !given.credentials.secret_access_key.empty() &&
      !given.credentials.session_token.empty() &&
      absl::ParseTime(absl::RFC3339_full, found.child_value("Expiration"), &given.expires, &why);
  if (whole) return given;
  return absl::UnavailableError(
      absl::StrCat("the answer (", body.size(), " bytes) has no credentials with an Expiration"));
}

bool IsSession(const std::string& name) {
  return name.size() >= kSessionMin && name.size() <= kSessionMax &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(c) || absl::StrContains("_+=,.@-", c);
         });
}

std::string SessionOf(const EnvironmentLookup& look_up) {
  std::string name = absl::StrCat("leeway-", look_up("HOSTNAME").value_or("worker"));
  name.resize(std::min(name.size(), kSessionMax));
  return IsSession(name) ? name : "leeway";
}

absl::StatusOr<Endpoint> StsEndpoint(const EnvironmentLookup& look_up, const std::string& region) {
  for (const char* name : {"AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"}) {
    const auto url = look_up(name);
    if (!url) continue;
    absl::StatusOr<Endpoint> endpoint = ParseEndpoint(*url);
    if (endpoint.ok()) return endpoint;
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": expected http://HOST:PORT or https://HOST"));
  }
  const std::string which = look_up("AWS_STS_REGIONAL_ENDPOINTS").value_or("regional");
  if (which == "legacy") return Endpoint{.host = "sts.amazonaws.com"};
  if (which == "regional") return AmazonStsEndpoint(region);
  return absl::InvalidArgumentError("AWS_STS_REGIONAL_ENDPOINTS: expected regional or legacy");
}

std::string Form(const Query& fields) {
  std::string text;
  for (const auto& [name, value] : fields) {
    absl::StrAppend(&text, text.empty() ? "" : "&", name, "=", EscapeQuery(value));
  }
  return text;
}

}  // namespace

absl::StatusOr<std::optional<WebIdentity>> FindWebIdentity(const EnvironmentLookup& look_up,
                                                           const std::string& region) {
  const auto file = look_up("AWS_WEB_IDENTITY_TOKEN_FILE");
  if (!file) return std::nullopt;
  const auto role = look_up("AWS_ROLE_ARN");
  if (!role) {
    return absl::InvalidArgumentError(
        "AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not: set it to the role that the "
        "token is for");
  }
  const std::string session = look_up("AWS_ROLE_SESSION_NAME").value_or(SessionOf(look_up));
  if (!IsSession(session)) {
    return absl::InvalidArgumentError(absl::StrCat("AWS_ROLE_SESSION_NAME: expected ", kSessionMin,
                                                   " to ", kSessionMax,
                                                   " characters of A-Z a-z 0-9 _+=,.@-"));
  }
  ASSIGN_OR_RETURN(Endpoint endpoint, StsEndpoint(look_up, region));
  return WebIdentity{*file, *role, session, std::move(endpoint)};
}

absl::StatusOr<ExpiringCredentials> AssumeRole(const WebIdentity& identity,
                                               const std::string& token, Duration stall,
                                               HttpTransport& transport) {
  // The fields are in the body, because proxies log URLs.
  const std::string form = Form({{"Action", kOperation},
                                 {"Version", "2011-06-15"},
                                 {"RoleArn", identity.role},
                                 {"RoleSessionName", identity.session},
                                 {"WebIdentityToken", token}});
  const HttpRequest request{
      .method = "POST",
      .url = absl::StrCat(identity.endpoint.scheme, "://", identity.endpoint.host,
                          identity.endpoint.path, "/"),
      .headers = {{"Content-Type", "application/x-www-form-urlencoded"}},
      .body = {reinterpret_cast<const uint8_t*>(form.data()), form.size()},
      .deadline = kTokenDeadline,
      .stall = stall,
      .answer_bytes_max = kTokenAnswerBytesMax};
  const std::string asked = absl::StrCat("asking for credentials of ", Printable(identity.role),
                                         " with the token in ", Printable(identity.token_file),
                                         ": ", kOperation, " at ", identity.endpoint.host);
  const absl::StatusOr<HttpAnswer> answer = transport.Send(request);
  RETURN_IF_ERROR(Annotate(answer.status(), asked));
  if (answer->status != 200) return Annotate(RefusedByTokenService(*answer), asked);
  absl::StatusOr<ExpiringCredentials> given = ParseTokenAnswer(answer->body);
  RETURN_IF_ERROR(Annotate(given.status(), asked));
  return given;
}

}  // namespace leeway
