#include "common/host.h"

#include <sched.h>

#include "tests/catch.h"
#include "tests/common/forked.h"

namespace leeway {
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
  if (child.answer() == "forbidden") {
    WARN("skipped: this system allows no network namespaces");
    return;
  }
  REQUIRE(child.answer().size() == 16);
  REQUIRE(child.answer() != HostIdentity());
}

TEST_CASE("another user is another host") {
  const Forked child(
      []() -> std::string { return seteuid(65534) == 0 ? HostIdentity() : "forbidden"; });
  if (child.answer() == "forbidden") {
    WARN("skipped: only root may become another user");
    return;
  }
  REQUIRE(child.answer().size() == 16);
  REQUIRE(child.answer() != HostIdentity());
}

}  // namespace
}  // namespace leeway
