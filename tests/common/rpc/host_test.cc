#include "common/rpc/host.h"

#include <sched.h>

#include "tests/catch.h"
#include "tests/common/forked.h"
#include "tests/skip.h"

namespace leeway::host {
namespace {

TEST_CASE("processes of one user on one host have the same host identity") {
  const std::string mine = HostIdentity();
  REQUIRE(mine.size() == 16);
  REQUIRE(mine.find_first_not_of("0123456789abcdef") == std::string::npos);
  REQUIRE(HostIdentity() == mine);
  const Forked child([] { return HostIdentity(); });
  REQUIRE(child.answer() == mine);
}

TEST_CASE("another network namespace is another host") {
  const Forked child(
      []() -> std::string { return unshare(CLONE_NEWNET) == 0 ? HostIdentity() : "forbidden"; });
  if (child.answer() == "forbidden") SKIP("this system allows no network namespaces");
  REQUIRE(child.answer().size() == 16);
  REQUIRE(child.answer() != HostIdentity());
}

TEST_CASE("another user is another host") {
  const Forked child(
      []() -> std::string { return seteuid(65534) == 0 ? HostIdentity() : "forbidden"; });
  if (child.answer() == "forbidden") SKIP("only root may become another user");
  REQUIRE(child.answer().size() == 16);
  REQUIRE(child.answer() != HostIdentity());
}

TEST_CASE("loopback is the same place to other users, and another one in another namespace") {
  const std::string mine = NetworkIdentity();
  REQUIRE(mine.size() == 16);
  REQUIRE(mine != HostIdentity());
  const Forked user([]() -> std::string { return seteuid(65534) == 0 ? NetworkIdentity() : ""; });
  if (!user.answer().empty()) CHECK(user.answer() == mine);
  const Forked apart(
      []() -> std::string { return unshare(CLONE_NEWNET) == 0 ? NetworkIdentity() : ""; });
  if (!apart.answer().empty()) CHECK(apart.answer() != mine);
}

}  // namespace
}  // namespace leeway::host
