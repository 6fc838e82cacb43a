#include "common/object_store/container_credentials.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/object_store/refusal.h"
#include "common/printable.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr std::chrono::seconds kAgentDeadline(10);
constexpr uint64_t kAgentAnswerBytesMax = 1 << 20;
constexpr char kEcsAgent[] = "http://169.254.170.2";
constexpr char kFullUri[] = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
// The addresses of the agents of ECS and EKS, and of this host. Requests to these addresses do not
// leave the host, so they may be sent in plaintext.
constexpr absl::string_view kAgents[] = {"169.254.170.2", "169.254.170.23", "[fd00:ec2::23]",
                                         "localhost", "[::1]"};

bool IsAgentHost(absl::string_view host) {
  const bool bracketed = absl::StartsWith(host, "[");
  const size_t end = bracketed ? host.find(']') + 1 : host.find(':');
  host = host.substr(0, std::min(end, host.size()));
  const bool loopback = absl::StartsWith(host, "127.") &&
                        std::all_of(host.begin(), host.end(),
                                    [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
  return loopback || std::find(std::begin(kAgents), std::end(kAgents), host) != std::end(kAgents);
}

absl::Status CheckUri(absl::string_view uri) {
  const bool clean = uri.find_first_of("@# \t\r\n\\") == absl::string_view::npos;
  absl::string_view rest = uri;
  if (clean && absl::ConsumePrefix(&rest, "https://") && !rest.empty()) return absl::OkStatus();
  rest = uri;
  if (clean && absl::ConsumePrefix(&rest, "http://") &&
      IsAgentHost(rest.substr(0, rest.find_first_of("/?")))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      kFullUri,
      ": expected https://HOST/PATH, or http://ADDRESS/PATH, where ADDRESS is localhost, a "
      "loopback address, 169.254.170.2, 169.254.170.23 or [fd00:ec2::23]"));
}

std::string TextIn(const nlohmann::json& document, const char* name) {
  const auto found = document.find(name);
  return found != document.end() && found->is_string() ? found->get<std::string>() : "";
}

absl::Status RefusedByAgent(const ContainerAgent& agent, const HttpAnswer& answer) {
  const auto document = nlohmann::json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  const std::string message = document.is_object() ? Printable(TextIn(document, "message")) : "";
  const auto text = [&](const std::string& advice) {
    return RefusalText(answer.status, /*name=*/"", message, advice);
  };
  if (answer.status >= 500 || answer.status == 429) return absl::UnavailableError(text(""));
  if (answer.status != 401 && answer.status != 403) {
    return absl::FailedPreconditionError(
        text(absl::StrCat("check ", kFullUri, " and the pod's service account")));
  }
  return absl::PermissionDeniedError(
      text(absl::StrCat("check the association of the service account with a role",
                        agent.token_file.empty() ? "" : ", and the token in ", agent.token_file)));
}

// Parses the answer. Errors do not quote it, because it may contain a secret.
absl::StatusOr<ExpiringCredentials> ParseAgentAnswer(const std::string& body) {
  const auto document = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  ExpiringCredentials given;
  bool whole = document.is_object();
  if (whole) {
    given.credentials = {TextIn(document, "AccessKeyId"), TextIn(document, "SecretAccessKey"),
                         TextIn(document, "Token")};
    std::string why;
    const std::string expiration = TextIn(document, "Expiration");
    // Long-lived credentials have no expiration.
    if (expiration.empty()) given.expires = absl::InfiniteFuture();
    whole = !given.credentials.access_key_id.empty() &&
            !given.credentials.secret_access_key.empty() &&
            (expiration.empty() ||
             absl::ParseTime(absl::RFC3339_full, expiration, &given.expires, &why));
  }
  if (whole) return given;
  return absl::UnavailableError(absl::StrCat(
      "the answer (", body.size(),
      " bytes) lacks AccessKeyId or SecretAccessKey, or its Expiration is not a time"));
}

}  // namespace

absl::StatusOr<std::optional<ContainerAgent>> FindContainerAgent(const EnvironmentLookup& look_up) {
  const auto relative = look_up("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const auto full = look_up(kFullUri);
  if (!relative && !full) return std::nullopt;
  ContainerAgent agent{.token_file = look_up("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").value_or(""),
                       .token = look_up("AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or("")};
  if (relative) {
    if (!absl::StartsWith(*relative, "/")) {
      return absl::InvalidArgumentError(
          "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: expected a path that begins with /");
    }
    agent.url = absl::StrCat(kEcsAgent, *relative);
    return agent;
  }
  RETURN_IF_ERROR(CheckUri(*full));
  agent.url = *full;
  return agent;
}

absl::StatusOr<ExpiringCredentials> AskContainerAgent(const ContainerAgent& agent,
                                                      const std::string& token, Duration stall,
                                                      HttpTransport& transport) {
  HttpRequest request{.method = "GET",
                      .url = agent.url,
                      .headers = {{"Accept", "application/json"}},
                      .direct = true,
                      .deadline = kAgentDeadline,
                      .stall = stall,
                      .answer_bytes_max = kAgentAnswerBytesMax};
  const std::string& authorization = agent.token_file.empty() ? agent.token : token;
  if (!authorization.empty()) request.headers.emplace_back("Authorization", authorization);
  const std::string asked =
      absl::StrCat("asking for credentials of this container at ", Printable(agent.url));
  const absl::StatusOr<HttpAnswer> answer = transport.Send(request);
  RETURN_IF_ERROR(Annotate(answer.status(), asked));
  if (answer->status != 200) return Annotate(RefusedByAgent(agent, *answer), asked);
  absl::StatusOr<ExpiringCredentials> given = ParseAgentAnswer(answer->body);
  RETURN_IF_ERROR(Annotate(given.status(), asked));
  return given;
}

}  // namespace leeway
