#include "client/transport/link_probe.h"

#include <atomic>
#include <cmath>
#include <string>

#include "tests/catch.h"
#include "tests/client/fake_coordinator.h"
#include "tests/whole/way.h"

namespace leeway::link_probe {
namespace {

// A link with these rates in bytes a second each way, and a time that every echo takes besides.
struct Wire {
  double up = 0;
  double down = 0;
  double latency = 0;
  std::string host = "there";
  // The first echo of a size takes this much longer, as while a connection gets up to speed.
  double first = 0;

  std::vector<size_t> asked = {};
  Time now = Time() + std::chrono::hours(1);

  absl::StatusOr<double> Measure(const std::string& here = "here") {
    return MeasureLink(
        here, [&] { return now; },
        [&](const v1::ProbeLinkRequest& request) -> absl::StatusOr<v1::ProbeLinkReply> {
          const size_t bytes = request.payload().size();
          const bool again = !asked.empty() && asked.back() == bytes;
          const auto moved = static_cast<double>(bytes);
          now += FromSeconds(latency + moved / up + moved / down + (again ? 0 : first));
          asked.push_back(bytes);
          v1::ProbeLinkReply reply;
          reply.set_payload(request.payload());
          reply.set_host(host);
          return reply;
        });
  }
};

TEST_CASE("a link's rate is what echoes take longer than empty ones, whatever those take") {
  for (const double rate : {1e5, 1e6, 12.5e6, 125e6, 1.25e9}) {
    for (const double latency : {0.0001, 0.1}) {
      Wire wire{.up = rate, .down = rate, .latency = latency};
      const auto link = wire.Measure();
      REQUIRE(link.ok());
      CHECK(*link == Approx(rate).epsilon(0.001));
    }
  }
  Wire uneven{.up = 1e6, .down = 10e6};
  CHECK(*uneven.Measure() == Approx(2 / (1 / 1e6 + 1 / 10e6)).epsilon(0.001));
}

TEST_CASE("no more is sent over a slow link than tells its rate, and that once") {
  Wire slow{.up = 1e5, .down = 1e5};
  REQUIRE(slow.Measure().ok());
  CHECK(slow.asked == std::vector<size_t>{0, 0, 0, 64 << 10});
  Wire fast{.up = 10e9, .down = 10e9};
  REQUIRE(fast.Measure().ok());
  CHECK(fast.asked.back() == 4 << 20);
}

TEST_CASE("what a connection takes to come up to its speed does not count") {
  Wire wire{.up = 1e9, .down = 1e9, .latency = 0.05, .first = 0.2};
  CHECK(*wire.Measure() == Approx(1e9).epsilon(0.001));
}

TEST_CASE("on one host there is no link, and nothing is sent to measure it") {
  Wire wire{.up = 1e6, .down = 1e6, .host = "here"};
  CHECK(std::isinf(*wire.Measure()));
  CHECK(wire.asked.back() == 0);
  // The place of these servers is not known.
  Wire unknown{.up = 1e6, .down = 1e6, .host = ""};
  CHECK(std::isfinite(*unknown.Measure("")));
}

TEST_CASE("an echo that fails, or is none, gives no rate") {
  const auto now = [] { return Time(); };
  CHECK(absl::IsUnavailable(MeasureLink("here", now, [](const auto&) {
                              return absl::UnavailableError("away");
                            }).status()));
  CHECK(absl::IsInternal(
      MeasureLink("here", now, [](const auto&) { return v1::ProbeLinkReply(); }).status()));
}

TEST_CASE("an echo that the way answers in the server's place, whatever it says, is sent again") {
  testing::FakeCoordinator coordinator;
  for (int code = 1; code <= 16; ++code) {
    INFO("code " << code);
    std::atomic<int> calls = 0;
    testing::Way way(static_cast<grpc::StatusCode>(code), [&](const std::string&) {
      return calls++ == 0 ? testing::WayFault::kBefore : testing::WayFault::kNone;
    });
    way.LeadTo(coordinator.address());
    v1::ProbeLinkRequest request;
    request.set_payload("echo");
    const auto reply = EchoOver(MakeChannel(way.address()))(request);
    REQUIRE(reply.ok());
    CHECK(reply->payload() == "echo");
    CHECK(calls == 2);
  }
}

TEST_CASE("an echo that the coordinator itself refuses is not sent again, through a way either") {
  testing::FakeCoordinator coordinator;
  coordinator.refuse = [](const std::string&) { return absl::InternalError("own word"); };
  testing::Way way(grpc::StatusCode::OK,
                   [](const std::string&) { return testing::WayFault::kNone; });
  way.LeadTo(coordinator.address());
  const auto reply = EchoOver(MakeChannel(way.address()))(v1::ProbeLinkRequest());
  CHECK(absl::IsInternal(reply.status()));
  CHECK(coordinator.calls("ProbeLink") == 1);
}

}  // namespace
}  // namespace leeway::link_probe
