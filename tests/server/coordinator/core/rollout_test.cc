#include "server/coordinator/core/rollout.h"

#include "tests/catch.h"
#include "tests/server/coordinator/core/taken.h"

namespace leeway::rollout {
namespace {

using Indices = std::vector<uint32_t>;

ServerTable Here(uint32_t servers) {
  ServerTable table(4, servers, std::chrono::seconds(10));
  for (uint32_t i = 0; i < servers; ++i) table.Register(i, Time());
  return table;
}

// Returns the servers that were told something since the last call, and checks the round.
Indices Told(Commands& commands, uint64_t round) {
  Indices told;
  for (const ConfigureServer& each : Taken<ConfigureServer>(commands)) {
    CHECK(each.round == round);
    told.push_back(each.server);
  }
  return told;
}

TEST_CASE("rollout: all that are here make their blocks in one round, until it is broken off") {
  Commands commands;
  Rollout rollout(commands);
  CHECK(rollout.round() == 0);
  rollout.Configure({}, Here(2), Time());
  CHECK(rollout.configuring());
  CHECK(Told(commands, 1) == Indices{0, 1});
  rollout.BreakOff();
  CHECK_FALSE(rollout.configuring());
  CHECK(rollout.round() == 1);
}

TEST_CASE("rollout: where nobody is first all hear at once") {
  Commands commands;
  Rollout rollout(commands);
  rollout.Begin({}, Here(3));
  rollout.Send({}, Here(3), Time());
  CHECK(Told(commands, 1) == Indices{0, 1, 2});
  CHECK_FALSE(rollout.waits());
  CHECK_FALSE(rollout.Heard(0));
}

TEST_CASE("rollout: the others hear once all of the first have, and the first not again") {
  Commands commands;
  Rollout rollout(commands);
  const ServerTable servers = Here(4);
  rollout.Begin({1, 2}, servers);
  rollout.Send({}, servers, Time());
  CHECK(Told(commands, 1) == Indices{1, 2});
  CHECK_FALSE(rollout.Heard(1));
  CHECK_FALSE(rollout.Heard(1));
  CHECK(rollout.waits());
  CHECK(rollout.Heard(2));
  CHECK_FALSE(rollout.waits());
  rollout.Send({}, servers, Time());
  CHECK(Told(commands, 1) == Indices{0, 3});
}

TEST_CASE("rollout: who has not heard of a round is first in the next one, if it is here") {
  Commands commands;
  Rollout rollout(commands);
  ServerTable servers = Here(4);
  rollout.Begin({1, 2}, servers);
  servers.Lose(2);
  rollout.Begin({3}, servers);
  rollout.Send({}, servers, Time());
  CHECK(Told(commands, 2) == Indices{1, 3});
  rollout.Forget(1);
  CHECK(rollout.Heard(3));
  rollout.Begin({0, 1}, servers);
  rollout.ForgetAll();
  CHECK_FALSE(rollout.waits());
}

}  // namespace
}  // namespace leeway::rollout
