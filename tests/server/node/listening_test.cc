// A server waits for a port that is taken, and others are told an address at which they reach the
// server.
#include "server/node/listening.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "common/address.h"
#include "tests/catch.h"
#include "tests/sockets.h"

namespace leeway::listening {
namespace {

std::string Others(const AddressOptions& options) {
  const auto address = AddressForOthers(options);
  INFO(address.status().ToString());
  REQUIRE(address.ok());
  return *address;
}

TEST_CASE("a port that is taken for a while is waited for, with pauses that grow") {
  std::optional<testing::TakenPort> taken(std::in_place);
  const std::string address = taken->address();
  CHECK(absl::IsUnavailable(TryToListen(address)));
  std::vector<Duration> pauses;
  const auto pause = [&](Duration duration) {
    pauses.push_back(duration);
    if (pauses.size() == 5) taken.reset();
    return true;
  };
  CHECK(TryFor(std::chrono::seconds(60), pause, [&] { return TryToListen(address); }).ok());
  REQUIRE(pauses.size() == 5);
  CHECK(std::is_sorted(pauses.begin(), pauses.end()));
  CHECK(pauses.front() < pauses.back());
}

TEST_CASE("a port that stays taken is given up after the limit, which the message names") {
  const testing::TakenPort taken;
  Duration paused{};
  const auto pause = [&](Duration duration) {
    paused += duration;
    return true;
  };
  const auto attempt = [&] { return TryToListen(taken.address()); };
  const absl::Status status = TryFor(std::chrono::seconds(7), pause, attempt);
  CHECK(absl::IsUnavailable(status));
  CHECK(paused == std::chrono::seconds(7));
  CHECK(absl::StrContains(status.message(), "--start-seconds"));
  CHECK(absl::StrContains(status.message(), taken.address()));
}

TEST_CASE("waiting ends with a signal, and at once with what does not pass") {
  const auto stopped = [](Duration) { return false; };
  const auto taken = [] { return absl::UnavailableError("taken"); };
  CHECK(absl::IsCancelled(TryFor(std::chrono::seconds(60), stopped, taken)));
  const auto wrong = [] { return absl::InvalidArgumentError("wrong"); };
  CHECK(absl::IsInvalidArgument(TryFor(std::chrono::seconds(60), stopped, wrong)));
}

TEST_CASE(
    "who listens everywhere is told to others at the address of its route to the coordinator") {
  CHECK(Others({"0.0.0.0:0", 7001, "", "127.0.0.1:7000"}) == "127.0.0.1:7001");
  CHECK(Others({"[::]:7001", 7001, "", "127.0.0.1:7000"}) == "127.0.0.1:7001");
  const bool six = TryToListen("[::1]:0").ok();
  if (six) CHECK(Others({"0.0.0.0:7001", 7001, "", "[::1]:7000"}) == "[::1]:7001");
  // A name that does not resolve yet may resolve later.
  CHECK(absl::IsUnavailable(
      AddressForOthers({"0.0.0.0:0", 7001, "", "no-such-host.invalid:7000"}).status()));
}

TEST_CASE("no server is told to others at a wildcard address") {
  for (const char* everywhere : {"0.0.0.0:7000", "[::]:7000", "0:7000"}) {
    INFO(everywhere);
    // Server 0 has no route to itself.
    CHECK(absl::IsInvalidArgument(CheckAddresses({everywhere, 0, "", ""})));
    CHECK(absl::IsInvalidArgument(CheckAddresses({"10.0.0.1:0", 0, everywhere, ""})));
    CHECK(absl::IsInvalidArgument(CheckAddresses({"10.0.0.1:0", 0, everywhere, "10.0.0.2:1"})));
    CHECK(CheckAddresses({everywhere, 0, "10.0.0.1:7000", ""}).ok());
  }
}

TEST_CASE("the address bound is told, or what the command says, with the port bound for port 0") {
  CHECK(Others({"10.0.0.1:0", 7001, "", ""}) == "10.0.0.1:7001");
  CHECK(Others({"[::1]:0", 7001, "", "127.0.0.1:1"}) == "[::1]:7001");
  CHECK(Others({"0.0.0.0:0", 7001, "10.0.0.1:9", ""}) == "10.0.0.1:9");
  CHECK(Others({"0.0.0.0:0", 7001, "server-0:0", ""}) == "server-0:7001");
  CHECK(Others({"localhost:0", 7001, "", "10.0.0.1:9"}).ends_with(":7001"));
}

TEST_CASE("a name of this machine's that means loopback to it is told as that") {
  const auto parts = SplitAddress(Others({"localhost:0", 7001, "", ""}));
  REQUIRE(parts.ok());
  CHECK(ReachOfNumber(parts->host) == Reach::kOwnHost);
}

}  // namespace
}  // namespace leeway::listening
