#include "client/participant/stop_gate.h"

#include "tests/catch.h"

namespace leeway::stop_gate {
namespace {

TEST_CASE("Clocks at or beyond the end are not begun") {
  int broken = 0;
  StopGate gate([&] { ++broken; });
  CHECK(gate.Enter(7));
  gate.Leave();
  gate.StopAt(8);
  CHECK(gate.Enter(7));
  gate.Leave();
  CHECK(!gate.Enter(8));
  CHECK(gate.IsOpen(7));
  CHECK(!gate.IsOpen(8));
  CHECK(broken == 0);
}

TEST_CASE("A clock that runs beyond the end is broken off, once, one before it goes on") {
  int broken = 0;
  StopGate gate([&] { ++broken; });
  REQUIRE(gate.Enter(7));
  gate.StopAt(8);
  CHECK(broken == 0);
  // A failing job stops earlier.
  gate.StopAt(0);
  gate.StopAt(0);
  CHECK(broken == 1);
}

TEST_CASE("A refused worker begins nothing, and what runs is broken off") {
  int broken = 0;
  StopGate gate([&] { ++broken; });
  REQUIRE(gate.Enter(7));
  gate.Refuse(absl::AbortedError("a newer life exists"));
  CHECK(broken == 1);
  gate.Leave();
  CHECK(!gate.Enter(7));
  CHECK(gate.refused().code() == absl::StatusCode::kAborted);
}

TEST_CASE("A refused worker is broken off between two exchanges as well, once") {
  int broken = 0;
  StopGate gate([&] { ++broken; });
  gate.Refuse(absl::FailedPreconditionError("the job has gone back"));
  CHECK(broken == 1);
  gate.Refuse(absl::FailedPreconditionError("the job has gone back"));
  gate.StopAt(0);
  CHECK(broken == 1);
}

}  // namespace
}  // namespace leeway::stop_gate
