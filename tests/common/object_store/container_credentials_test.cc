#include "common/object_store/container_credentials.h"

#include <map>

#include "tests/catch.h"
#include "tests/common/object_store/fake_transport.h"

namespace leeway::container_credentials {
namespace {

constexpr std::chrono::seconds kStall(3);

using Variables = std::map<std::string, std::string>;

absl::StatusOr<std::optional<ContainerAgent>> Find(const Variables& variables) {
  return FindContainerAgent([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

constexpr char kFull[] = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
const Variables kPod = {{kFull, "http://169.254.170.23/v1/credentials"},
                        {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/var/run/pod-token"},
                        {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "other"}};
constexpr char kGiven[] =
    R"({"AccessKeyId": "ASIA2", "SecretAccessKey": "hidden", "Token": "t",
        "Expiration": "2026-01-02T03:04:05Z", "AccountId": "1"})";

absl::StatusOr<ExpiringCredentials> Ask(Scripted& script, const Variables& variables = kPod) {
  FakeTransport transport(&script);
  return AskContainerAgent(**Find(variables), "pod-token", kStall, transport);
}

std::string Authorization(const Scripted& script) {
  for (const auto& [name, value] : script.requests.back().headers) {
    if (name == "Authorization") return value;
  }
  return "";
}

TEST_CASE("the agent is asked with the file's token, not by way of a proxy, without a signature") {
  Scripted script;
  script.Answer(200, kGiven);
  const auto given = Ask(script);
  REQUIRE(given.ok());
  CHECK(given->credentials == Credentials{"ASIA2", "hidden", "t"});
  CHECK(absl::ToUnixSeconds(given->expires) == 1767323045);
  const HttpRequest& request = script.requests.back();
  CHECK(request.method == "GET");
  CHECK(request.url == "http://169.254.170.23/v1/credentials");
  CHECK(request.direct);
  CHECK(request.credentials.access_key_id.empty());
  CHECK(Authorization(script) == "pod-token");
}

TEST_CASE("other forms of the settings: ECS's path, a token in the environment, none") {
  Scripted script;
  script.Answer(200, R"({"AccessKeyId": "A", "SecretAccessKey": "s"})");
  const auto given = Ask(script, {{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x"},
                                  {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "other"}});
  REQUIRE(given.ok());
  CHECK(given->expires == absl::InfiniteFuture());
  CHECK(script.requests.back().url == "http://169.254.170.2/v2/x");
  CHECK(Authorization(script) == "other");
  CHECK(Ask(script, {{kFull, "http://localhost:80/x"}}).ok());
  CHECK(Authorization(script).empty());
  CHECK(!Find({{"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/x"}})->has_value());
}

TEST_CASE("a token goes in the clear to this host and the agents only") {
  for (const char* url : {"https://agent.example/x", "http://127.0.0.1:1/x", "http://127.8.9.1",
                          "http://[::1]:80/", "http://[fd00:ec2::23]/v1/credentials",
                          "http://169.254.170.2/x?y=1", "http://localhost/x"}) {
    CAPTURE(url);
    CHECK(Find({{kFull, url}}).ok());
  }
  for (const char* url :
       {"http://agent.example/x", "http://169.254.169.254/x", "http://127.evil.example/x",
        "http://localhost.evil.example/x", "http://localhost@evil.example/", "ftp://localhost/",
        "https://", "http://[::1", "http://169.254.170.231/", "http://evil.example\\localhost/"}) {
    CAPTURE(url);
    const auto found = Find({{kFull, url}});
    CHECK(absl::IsInvalidArgument(found.status()));
    CHECK_THAT(std::string(found.status().message()), Catch::Contains(kFull));
  }
  CHECK(absl::IsInvalidArgument(
      Find({{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@evil.example/"}}).status()));
}

TEST_CASE("a refusal names the agent and what to do, what may pass is told apart") {
  const std::tuple<int, const char*, absl::StatusCode, const char*> cases[] = {
      {401, "", absl::StatusCode::kPermissionDenied, "/var/run/pod-token"},
      {403, R"({"message": "no association"})", absl::StatusCode::kPermissionDenied,
       "no association"},
      {404, "[]", absl::StatusCode::kFailedPrecondition, kFull},
      {500, "<html>", absl::StatusCode::kUnavailable, "500"},
      {429, "", absl::StatusCode::kUnavailable, "429"},
      {200, "<html>", absl::StatusCode::kUnavailable, "lacks AccessKeyId"},
      {200, R"({"AccessKeyId": 1, "SecretAccessKey": "hidden"})", absl::StatusCode::kUnavailable,
       "lacks AccessKeyId"},
      {200, R"({"AccessKeyId": "a", "SecretAccessKey": "hidden", "Expiration": "soon"})",
       absl::StatusCode::kUnavailable, "lacks AccessKeyId"}};
  for (const auto& [http, body, code, word] : cases) {
    CAPTURE(http, body);
    Scripted script;
    script.Answer(http, body);
    const auto given = Ask(script);
    CHECK(given.status().code() == code);
    CHECK_THAT(std::string(given.status().message()),
               Catch::Contains("http://169.254.170.23/v1/credentials") && Catch::Contains(word) &&
                   !Catch::Contains("hidden"));
  }
}

}  // namespace
}  // namespace leeway::container_credentials
