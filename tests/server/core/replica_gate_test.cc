#include "server/core/replica_gate.h"

#include "tests/catch.h"

namespace leeway::replica_gate {
namespace {

TEST_CASE("without a replica everything leaves, and nothing is sent") {
  ReplicaGate gate;
  CHECK(gate.IsOpen(7));
  CHECK_FALSE(gate.TakeSend(7));
  CHECK_FALSE(gate.synced());
}

TEST_CASE("a new replica holds nothing up until it has had its first state") {
  ReplicaGate gate;
  gate.Attach();
  CHECK(gate.IsOpen(3));
  REQUIRE(gate.TakeSend(3));
  CHECK(gate.IsOpen(4));
  gate.OnSent(true, 3);
  CHECK(gate.synced());
  CHECK(gate.IsOpen(3));
  CHECK_FALSE(gate.IsOpen(4));
}

TEST_CASE(
    "what left while the first state was under way must arrive before the replica is synced") {
  ReplicaGate gate;
  gate.Attach();
  REQUIRE(gate.TakeSend(3));
  gate.OnSent(true, 5);
  CHECK_FALSE(gate.synced());
  CHECK_FALSE(gate.IsOpen(5));
  REQUIRE(gate.TakeSend(5));
  gate.OnSent(true, 6);
  CHECK(gate.synced());
  CHECK(gate.IsOpen(5));
  CHECK_FALSE(gate.IsOpen(6));
}

TEST_CASE("one state is under way at a time, and the next is the newest") {
  ReplicaGate gate;
  gate.Attach();
  REQUIRE(gate.TakeSend(0));
  CHECK_FALSE(gate.TakeSend(1));
  gate.OnSent(true, 4);
  REQUIRE(gate.TakeSend(4));
  gate.OnSent(true, 4);
  CHECK_FALSE(gate.TakeSend(4));
}

TEST_CASE("what did not arrive is sent again, and nothing leaves meanwhile") {
  ReplicaGate gate;
  gate.Attach();
  REQUIRE(gate.TakeSend(0));
  gate.OnSent(true, 0);
  REQUIRE(gate.TakeSend(1));
  gate.OnSent(false, 1);
  CHECK_FALSE(gate.IsOpen(1));
  CHECK(gate.IsOpen(0));
  REQUIRE(gate.TakeSend(1));
  gate.OnSent(true, 1);
  CHECK(gate.IsOpen(1));
}

TEST_CASE("another replica begins with nothing, none lets everything go") {
  ReplicaGate gate;
  gate.Attach();
  REQUIRE(gate.TakeSend(0));
  gate.OnSent(true, 0);
  gate.Attach();
  CHECK_FALSE(gate.synced());
  CHECK(gate.IsOpen(9));
  REQUIRE(gate.TakeSend(2));
  gate.OnSent(true, 2);
  CHECK_FALSE(gate.IsOpen(3));
  gate.Detach();
  CHECK(gate.IsOpen(3));
}

}  // namespace
}  // namespace leeway::replica_gate
