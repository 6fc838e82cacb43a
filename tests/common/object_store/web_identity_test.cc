#include "common/object_store/web_identity.h"

#include <map>

#include "tests/catch.h"
#include "tests/common/object_store/fake_transport.h"

namespace leeway::web_identity {
namespace {

constexpr std::chrono::seconds kStall(3);

using Variables = std::map<std::string, std::string>;

absl::StatusOr<std::optional<WebIdentity>> Find(const Variables& variables,
                                                const std::string& region = "eu-central-1") {
  return FindWebIdentity(
      [&](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      },
      region);
}

const Variables kPod = {{"AWS_WEB_IDENTITY_TOKEN_FILE", "/var/run/token"},
                        {"AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/train"}};

Variables With(const Variables& more) {
  Variables all = kPod;
  for (const auto& [name, value] : more) all[name] = value;
  return all;
}

std::string Host(const Variables& more, const std::string& region) {
  const auto found = Find(With(more), region);
  return found.ok() ? (*found)->endpoint.host : std::string(found.status().message());
}

constexpr char kGiven[] =
    "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"
    "<AssumeRoleWithWebIdentityResult><Credentials><SessionToken>t+/=</SessionToken>"
    "<SecretAccessKey>hidden</SecretAccessKey><Expiration>2026-01-02T03:04:05Z</Expiration>"
    "<AccessKeyId>ASIA1</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult>"
    "<ResponseMetadata><RequestId>r</RequestId></ResponseMetadata>"
    "</AssumeRoleWithWebIdentityResponse>";

absl::StatusOr<ExpiringCredentials> Ask(Scripted& script) {
  FakeTransport transport(&script);
  return AssumeRole(**Find(kPod), "to.ken+/", kStall, transport);
}

TEST_CASE("a role is assumed by a request that is not signed, with the token in its body") {
  Scripted script;
  script.Answer(200, kGiven);
  const auto given = Ask(script);
  REQUIRE(given.ok());
  CHECK(given->credentials == Credentials{"ASIA1", "hidden", "t+/="});
  // 2026-01-02T03:04:05Z
  CHECK(absl::ToUnixSeconds(given->expires) == 1767323045);
  const HttpRequest& request = script.requests.front();
  CHECK(request.method == "POST");
  CHECK(request.url == "https://sts.eu-central-1.amazonaws.com/");
  CHECK(request.credentials.access_key_id.empty());
  CHECK(script.bodies.front() ==
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15"
        "&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Ftrain"
        "&RoleSessionName=leeway-worker&WebIdentityToken=to.ken%2B%2F");
  CHECK(request.headers.front().second == "application/x-www-form-urlencoded");
  CHECK(request.deadline <= Duration(std::chrono::seconds(15)));
  CHECK(request.stall == Duration(kStall));
}

TEST_CASE("a refusal names the role, the file, STS's reason and what to do, but no secret") {
  const std::tuple<int, const char*, absl::StatusCode, const char*> cases[] = {
      {403, "AccessDenied", absl::StatusCode::kPermissionDenied, "trust policy"},
      {400, "ExpiredTokenException", absl::StatusCode::kUnauthenticated, "clock"},
      {400, "InvalidIdentityToken", absl::StatusCode::kUnauthenticated, "identity provider"},
      {403, "RegionDisabledException", absl::StatusCode::kFailedPrecondition, "legacy"},
      {400, "ValidationError", absl::StatusCode::kFailedPrecondition, "AWS_ROLE_ARN"},
      {400, "IDPCommunicationError", absl::StatusCode::kUnavailable, "IDPCommunicationError"},
      {400, "Throttling", absl::StatusCode::kUnavailable, "Throttling"},
      {404, "Strange", absl::StatusCode::kFailedPrecondition, "AWS_ENDPOINT_URL_STS"},
      {503, "ServiceUnavailable", absl::StatusCode::kUnavailable, "503"}};
  for (const auto& [http, code, status, advice] : cases) {
    CAPTURE(code);
    Scripted script;
    script.Answer(http, absl::StrCat("<ErrorResponse><Error><Type>Sender</Type><Code>", code,
                                     "</Code><Message>why</Message></Error></ErrorResponse>"));
    const auto given = Ask(script);
    CHECK(given.status().code() == status);
    CHECK_THAT(std::string(given.status().message()),
               Catch::Contains("arn:aws:iam::123456789012:role/train") &&
                   Catch::Contains("/var/run/token") && Catch::Contains("(why)") &&
                   Catch::Contains("sts.eu-central-1") && Catch::Contains(advice) &&
                   !Catch::Contains("to.ken"));
  }
}

TEST_CASE(
    "an answer that is none may be a proxy's, and is asked for again, nothing of it is told") {
  std::string cut = kGiven;
  cut.resize(cut.find("<Expiration>"));
  std::string undated = kGiven;
  undated.replace(undated.find("2026"), 4, "soon");
  for (const std::string& body : {std::string("<html>hello</html>"), cut, undated, std::string()}) {
    CAPTURE(body);
    Scripted script;
    script.Answer(200, body);
    const auto given = Ask(script);
    CHECK(absl::IsUnavailable(given.status()));
    CHECK_THAT(std::string(given.status().message()),
               Catch::Contains("no credentials") && !Catch::Contains("hidden"));
  }
  Scripted silent;
  CHECK(absl::IsUnavailable(Ask(silent).status()));
}

TEST_CASE("STS is the region's, unless the environment says otherwise") {
  CHECK(Host({}, "eu-north-1") == "sts.eu-north-1.amazonaws.com");
  CHECK(Host({{"AWS_STS_REGIONAL_ENDPOINTS", "regional"}}, "cn-north-1") ==
        "sts.cn-north-1.amazonaws.com.cn");
  CHECK(Host({{"AWS_STS_REGIONAL_ENDPOINTS", "legacy"}}, "eu-north-1") == "sts.amazonaws.com");
  CHECK(Host({{"AWS_ENDPOINT_URL", "http://minio:9000"}}, "x") == "minio:9000");
  CHECK(Host({{"AWS_ENDPOINT_URL", "http://minio:9000"}, {"AWS_ENDPOINT_URL_STS", "https://sts:1"}},
             "x") == "sts:1");
}

TEST_CASE("a session is named by the host, as far as names of sessions go") {
  CHECK((*Find(With({{"HOSTNAME", "server-0"}})))->session == "leeway-server-0");
  CHECK((*Find(With({{"HOSTNAME", std::string(80, 'x')}})))->session.size() == 64);
  CHECK((*Find(With({{"HOSTNAME", "a b"}})))->session == "leeway");
  CHECK((*Find(With({{"AWS_ROLE_SESSION_NAME", "me@home"}})))->session == "me@home");
}

TEST_CASE("a web identity is complete, or there is none") {
  CHECK(!Find({})->has_value());
  CHECK(!Find({{"AWS_ROLE_ARN", "arn"}})->has_value());
  for (const auto& [name, value] : Variables{{"AWS_ROLE_SESSION_NAME", "a"},
                                             {"AWS_STS_REGIONAL_ENDPOINTS", "both"},
                                             {"AWS_ENDPOINT_URL_STS", "sts:9000"}}) {
    const auto found = Find(With({{name, value}}));
    CHECK(absl::IsInvalidArgument(found.status()));
    CHECK_THAT(std::string(found.status().message()), Catch::Contains(name));
  }
  const auto found = Find({{"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"}});
  CHECK_THAT(std::string(found.status().message()), Catch::Contains("AWS_ROLE_ARN"));
}

}  // namespace
}  // namespace leeway::web_identity
