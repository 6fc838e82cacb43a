// Which hosts the servers are on. Whole jobs show the rest: reach_test.cc, replicas_test.cc,
// resize_test.cc and restart_test.cc.
#include "server/coordinator/core/server_fleet.h"

#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::server_fleet {
namespace {

struct Fleet {
  void Register(uint32_t index, uint64_t nonce, const std::string& host) {
    v1::RegisterServerRequest request;
    request.set_index(index);
    request.set_address("server" + std::to_string(index) + ":1");
    request.set_nonce(nonce);
    request.set_host(host);
    fleet.Register(request, Time(std::chrono::seconds(1000)));
  }

  const JobFacts facts{TestOptions({.servers = 3})};
  Commands commands;
  ServerFleet fleet{facts, commands};
};

TEST_CASE("fleet: all are on one host where each that is here says the same one") {
  Fleet of;
  CHECK_FALSE(of.fleet.OnOneHost());
  of.Register(0, 1, "a");
  of.Register(1, 1, "a");
  CHECK(of.fleet.OnOneHost());
  of.Register(2, 1, "b");
  CHECK_FALSE(of.fleet.OnOneHost());
  of.fleet.Remove(2);
  CHECK(of.fleet.OnOneHost());
  of.Register(1, 2, "");
  CHECK_FALSE(of.fleet.OnOneHost());
  of.Register(0, 2, "");
  CHECK_FALSE(of.fleet.OnOneHost());
}

}  // namespace
}  // namespace leeway::server_fleet
