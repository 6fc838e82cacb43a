#include "common/security/call_gate.h"

#include "common/files/files.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::call_gate {
namespace {

constexpr char kMethod[] = "leeway.v1.Coordinator.StopJob";
const std::vector<v1::Role> kCallers = {v1::ROLE_SERVER, v1::ROLE_LAUNCHER};

Token TokenOf(const char* text) { return Token::Parse(text, "test").value(); }

const Token kToken = TokenOf("0123456789abcdef-job");
const Token kStatus = TokenOf("0123456789abcdef-status");

absl::StatusCode Admitted(const CallGate& gate, const CallerFacts& facts,
                          const std::vector<v1::Role>& callers = kCallers) {
  return gate.Admit(facts, callers, kMethod).status().code();
}

TEST_CASE("a job without a token and without certificates lets in everybody") {
  CHECK(Admitted(CallGate({}), {}) == absl::StatusCode::kOk);
  CHECK(Admitted(CallGate({}), {.authorization = "Bearer whatever"}) == absl::StatusCode::kOk);
}

TEST_CASE("a token must be the job's, whole and with its scheme") {
  const CallGate gate({.token = kToken});
  const std::string right = kToken.Authorization();
  CHECK(Admitted(gate, {.authorization = right}) == absl::StatusCode::kOk);
  for (const std::string& wrong :
       {std::string(), std::string("Bearer "), kToken.text(), right + " ", " " + right,
        right.substr(0, right.size() - 1), right + "x", kStatus.Authorization(),
        "bearer " + kToken.text()}) {
    INFO(wrong);
    CHECK(Admitted(gate, {.authorization = wrong}) == absl::StatusCode::kUnauthenticated);
  }
  // A certificate does not replace the token.
  CHECK(Admitted(gate, {.uris = {RoleUri(v1::ROLE_SERVER)}}) == absl::StatusCode::kUnauthenticated);
}

TEST_CASE("the status's token reads the status, whatever the certificate may") {
  const CallGate gate({.certificates = true, .token = kToken, .status_token = kStatus});
  const std::string status = kStatus.Authorization();
  const CallerFacts server{.uris = {RoleUri(v1::ROLE_SERVER)}, .authorization = status};
  CHECK(Admitted(gate, server) == absl::StatusCode::kPermissionDenied);
  CHECK(Admitted(gate, server, {v1::ROLE_STATUS}) == absl::StatusCode::kOk);
  CHECK(Admitted(gate, {.authorization = status}, {v1::ROLE_STATUS}) ==
        absl::StatusCode::kUnauthenticated);
}

TEST_CASE("with certificates each role may what the contract says") {
  const CallGate gate({.certificates = true});
  for (const v1::Role role :
       {v1::ROLE_SERVER, v1::ROLE_WORKER, v1::ROLE_LAUNCHER, v1::ROLE_STATUS}) {
    const bool may = std::count(kCallers.begin(), kCallers.end(), role) > 0;
    CHECK(Admitted(gate, {.uris = {RoleUri(role)}}) ==
          (may ? absl::StatusCode::kOk : absl::StatusCode::kPermissionDenied));
  }
  CHECK(Admitted(gate, {}) == absl::StatusCode::kUnauthenticated);
  CHECK(Admitted(gate, {.uris = {"spiffe://a/other/server"}}) ==
        absl::StatusCode::kUnauthenticated);
}

TEST_CASE("a caller of another trust domain is refused by name, whatever its role") {
  const CallGate gate({.certificates = true, .trust_domain = "vision"});
  for (const v1::Role role :
       {v1::ROLE_SERVER, v1::ROLE_WORKER, v1::ROLE_LAUNCHER, v1::ROLE_STATUS}) {
    const std::vector<v1::Role> callers = {role};
    CHECK(Admitted(gate, {.uris = {RoleUri(role, {}, "vision")}}, callers) ==
          absl::StatusCode::kOk);
    const auto other = gate.Admit({.uris = {RoleUri(role, {}, "speech")}}, callers, kMethod);
    CHECK(absl::IsPermissionDenied(other.status()));
    CHECK(other.status().message() ==
          "the caller's certificate is for the trust domain 'speech', but this server admits "
          "only 'vision' (--trust-domain)");
  }
  CHECK(Admitted(CallGate({.certificates = true}), {.uris = {RoleUri(v1::ROLE_SERVER, {}, "x")}}) ==
        absl::StatusCode::kOk);
}

TEST_CASE("while a token changes both are let in") {
  const TempFolder folder;
  REQUIRE(WriteFileAtomically(folder / "token", kToken.text() + "\n" + kStatus.text()).ok());
  const KeptToken kept = KeptToken::Keep(folder / "token", std::chrono::hours(1)).value();
  const CallGate gate({.token = kept});
  const std::string one = kToken.Authorization(), two = kStatus.Authorization();
  CHECK(kept.Authorization() == one);
  CHECK(Admitted(gate, {.authorization = one}) == absl::StatusCode::kOk);
  CHECK(Admitted(gate, {.authorization = two}) == absl::StatusCode::kOk);
  REQUIRE(WriteFileAtomically(folder / "token", kStatus.text() + "\n").ok());
  kept.Look();
  CHECK(kept.Authorization() == two);
  CHECK(Admitted(gate, {.authorization = one}) == absl::StatusCode::kUnauthenticated);
  CHECK(Admitted(gate, {.authorization = two}) == absl::StatusCode::kOk);
}

TEST_CASE("through the unix socket comes the data plane, which needs the token as others do") {
  const CallGate gate({.certificates = true, .token = kToken});
  const std::string right = kToken.Authorization();
  CHECK(Admitted(gate, {.local = true, .authorization = right}) ==
        absl::StatusCode::kPermissionDenied);
  CHECK(Admitted(gate, {.local = true, .authorization = right}, {v1::ROLE_WORKER}) ==
        absl::StatusCode::kOk);
  CHECK(Admitted(gate, {.local = true}, {v1::ROLE_WORKER}) == absl::StatusCode::kUnauthenticated);
  // Servers of one host replicate through the local socket.
  const CallerFacts replicating{.local = true, .authorization = right};
  CHECK_FALSE(gate.Admit(replicating, {v1::ROLE_WORKER, v1::ROLE_SERVER}, kMethod)->role);
}

TEST_CASE("a certificate of one rank is for that rank") {
  CHECK(CheckRank({}, 3).ok());
  CHECK(CheckRank({.role = v1::ROLE_WORKER}, 3).ok());
  CHECK(CheckRank({.role = v1::ROLE_WORKER, .rank = 3}, 3).ok());
  const absl::Status refused = CheckRank({.role = v1::ROLE_WORKER, .rank = 2}, 3);
  CHECK(absl::IsPermissionDenied(refused));
  CHECK(refused.message() == "the caller's certificate is for rank 2, not 3");
}

}  // namespace
}  // namespace leeway::call_gate
