// Which hosts can reach a server at an address.
#include "common/address.h"

#include "tests/catch.h"

namespace leeway::address {
namespace {

Reach Of(const std::string& address) {
  const auto parts = SplitAddress(address);
  INFO(address);
  REQUIRE(parts.ok());
  return ReachOf(*parts);
}

TEST_CASE("at a wildcard address nobody else is reached, however it is written") {
  for (const char* address :
       {"0.0.0.0:1", "0:1", "0.0:1", "0x0:1", "[::]:1", "[0:0::0]:1", "[::ffff:0.0.0.0]:1"}) {
    INFO(address);
    CHECK(Of(address) == Reach::kNobody);
  }
}

TEST_CASE("at a loopback address a server's own host reaches it, however it is written") {
  for (const char* address :
       {"127.0.0.1:1", "127.1:1", "127.0.1.1:65535", "0x7f000001:1", "2130706433:1", "[::1]:1",
        "[0:0:0:0:0:0:0:1]:1", "[::ffff:127.0.0.1]:1", "localhost:1", "LocalHost.:1",
        "ip6-localhost:1", "a.localhost:1"}) {
    INFO(address);
    CHECK(Of(address) == Reach::kOwnHost);
  }
}

TEST_CASE("of any other address nothing is known") {
  for (const char* address : {"10.0.0.1:7000", "1.127.0.1:1", "[fe80::1%eth0]:1", "[fd00::2]:0",
                              "server-0.job:7000", "localhosts:1", "[::ffff:10.0.0.1]:1"}) {
    INFO(address);
    CHECK(Of(address) == Reach::kAnybody);
  }
}

TEST_CASE("what is not HOST:PORT is no address, whatever gRPC would make of it") {
  for (const char* text :
       {"", "host", ":7000", "host:", "host:65536", "host:-1", "host:a", "::1", "::1:7000", "[::1]",
        "ipv4:127.0.0.1:7000", "dns:///localhost:7000", "unix:/tmp/x:1", "a/b:1", "[host]:1"}) {
    INFO(text);
    CHECK(absl::IsInvalidArgument(SplitAddress(text).status()));
  }
}

TEST_CASE("nobody can connect to port 0") {
  CHECK(CheckAddressToReach("host:1").ok());
  CHECK(CheckAddressToReach("[::1]:65535").ok());
  for (const char* text : {"host:0", "host:00", "foo", ""}) {
    INFO(text);
    const absl::Status status = CheckAddressToReach(text);
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("expected HOST:PORT"));
  }
}

}  // namespace
}  // namespace leeway::address
