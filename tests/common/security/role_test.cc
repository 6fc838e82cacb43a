#include "common/security/role.h"

#include <google/protobuf/descriptor.h>

#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/parameter_server.pb.h"
#include "tests/catch.h"

namespace leeway::role {
namespace {

const std::vector<v1::Role> kRoles = {v1::ROLE_SERVER, v1::ROLE_WORKER, v1::ROLE_LAUNCHER,
                                      v1::ROLE_STATUS, v1::ROLE_PEER};

TEST_CASE("a certificate's URI says the role and the rank that it was made for") {
  for (const v1::Role role : kRoles) {
    const auto caller = CallerOf({RoleUri(role)});
    REQUIRE(caller);
    CHECK(caller->role == role);
    CHECK_FALSE(caller->rank);
  }
  const auto bound = CallerOf({RoleUri(v1::ROLE_WORKER, 12)});
  REQUIRE(bound);
  CHECK(bound->rank == 12u);
  CHECK(CallerOf({RoleUri(v1::ROLE_PEER, 3)})->rank == 3u);
  CHECK(CallerOf({"https://example.org/", "spiffe://a.cluster/leeway/server"})->role ==
        v1::ROLE_SERVER);
}

TEST_CASE("a certificate's URI says the trust domain, which has a form") {
  const std::string uri = RoleUri(v1::ROLE_WORKER, 3, "vision.example_1");
  CHECK(uri == "spiffe://vision.example_1/leeway/worker/3");
  CHECK(CallerOf({uri})->trust_domain == "vision.example_1");
  CHECK(Described(*CallerOf({uri})) ==
        "a worker's certificate for the trust domain 'vision.example_1'");
  CHECK(CallerOf({RoleUri(v1::ROLE_SERVER)})->trust_domain == "leeway");
  CHECK(Described({}) == "a certificate without a role");
  CHECK(CheckTrustDomain("--x", std::string(255, 'a')).ok());
  for (const std::string& bad : {std::string(), std::string(256, 'a'), std::string("A"),
                                 std::string("a/b"), std::string("a b"), std::string("a,URI:x")}) {
    INFO(bad);
    CHECK(absl::IsInvalidArgument(CheckTrustDomain("--x", bad)));
  }
}

TEST_CASE("what is no such URI, or one of two, names no role") {
  for (const char* uri :
       {"", "spiffe://leeway/leeway", "spiffe://leeway/leeway/", "spiffe:///leeway/server",
        "spiffe://leeway/other/server", "http://leeway/leeway/server", "spiffe://a/leeway/Server",
        "spiffe://a/leeway/unspecified", "spiffe://a/leeway/role_server", "spiffe://a/leeway/root",
        "spiffe://a/leeway/server/1", "spiffe://a/leeway/worker/", "spiffe://a/leeway/worker/-1",
        "spiffe://a/leeway/worker/01", "spiffe://a/leeway/worker/4294967296",
        "spiffe://a/leeway/worker/1/2", "spiffe:/x/a/leeway/server"}) {
    INFO(uri);
    CHECK_FALSE(CallerOf({uri}));
  }
  CHECK_FALSE(CallerOf({}));
  CHECK_FALSE(CallerOf({RoleUri(v1::ROLE_WORKER), RoleUri(v1::ROLE_SERVER)}));
}

TEST_CASE("every method of the contract says who may call it") {
  const google::protobuf::FileDescriptor* files[] = {
      v1::RegisterWorkerRequest::descriptor()->file(), v1::AttachRequest::descriptor()->file()};
  int methods = 0;
  for (const auto* file : files) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        const std::string name = file->service(i)->method(j)->full_name();
        INFO(name);
        const std::vector<v1::Role> callers = CallersOf(name);
        CHECK_FALSE(callers.empty());
        CHECK(std::count(callers.begin(), callers.end(), v1::ROLE_UNSPECIFIED) == 0);
        ++methods;
      }
    }
  }
  CHECK(methods > 20);
  CHECK(CallersOf("leeway.v1.Coordinator.NoSuchMethod").empty());
}

TEST_CASE("only servers control servers, and a status reader reads the status only") {
  for (const char* method : {"Configure", "SetLive", "CommitSet", "Save", "Shutdown"}) {
    CHECK(CallersOf(std::string("leeway.v1.ShardControl.") + method) ==
          std::vector<v1::Role>{v1::ROLE_SERVER});
  }
  const auto* coordinator = v1::RegisterWorkerRequest::descriptor()->file()->service(0);
  for (int i = 0; i < coordinator->method_count(); ++i) {
    const auto callers = CallersOf(coordinator->method(i)->full_name());
    const bool reads = std::count(callers.begin(), callers.end(), v1::ROLE_STATUS) > 0;
    CHECK(reads == (coordinator->method(i)->name() == "GetJobStatus"));
  }
}

}  // namespace
}  // namespace leeway::role
