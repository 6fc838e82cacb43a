#include "server/coordinator/core/server_processes.h"

#include "tests/catch.h"

namespace leeway::server_processes {
namespace {

v1::RegisterServerRequest Process(uint64_t nonce, uint32_t index = 0) {
  v1::RegisterServerRequest request;
  request.set_index(index);
  request.set_address("server0:1");
  request.set_nonce(nonce);
  return request;
}

TEST_CASE("a process that was replaced is past once the one after it has been heard") {
  ServerProcesses processes(1);
  processes.Register(Process(1));
  processes.Register(Process(2));
  CHECK_FALSE(processes.Past(Process(1)));
  processes.Confirm(0);
  CHECK(processes.Past(Process(1)));
  CHECK_FALSE(processes.Past(Process(2)));
  CHECK_FALSE(processes.Past(Process(3)));
}

TEST_CASE("a process that takes its index back is not past, and who had it meanwhile is") {
  ServerProcesses processes(1);
  processes.Register(Process(1));
  processes.Register(Process(2));
  processes.Register(Process(1));
  processes.Confirm(0);
  CHECK_FALSE(processes.Past(Process(1)));
  CHECK(processes.Past(Process(2)));
}

TEST_CASE("server processes: an index or an address that cannot be is refused") {
  const ServerProcesses processes(4);
  CHECK(processes.Check(Process(1, 3)).ok());
  CHECK(absl::IsInvalidArgument(processes.Check(Process(1, 4))));
  v1::RegisterServerRequest nowhere = Process(1);
  nowhere.clear_address();
  CHECK(absl::IsInvalidArgument(processes.Check(nowhere)));
}

TEST_CASE("server processes: a registration is the same from one process at one address") {
  ServerProcesses processes(4);
  processes.Register(Process(1));
  CHECK(processes.Same(Process(1)));
  CHECK_FALSE(processes.Same(Process(2)));
  v1::RegisterServerRequest moved = Process(1);
  moved.set_address("server0:2");
  CHECK_FALSE(processes.Same(moved));
}

TEST_CASE("server processes: what registers is taken as it is, and replaces all that was there") {
  ServerProcesses processes(4);
  v1::RegisterServerRequest first = Process(1);
  first.set_local_address("unix:1");
  first.set_host("host");
  first.set_network("net");
  first.set_pid(7);
  first.set_held_generation(3);
  processes.Register(first);
  CHECK(processes[0].address == "server0:1");
  CHECK(processes[0].local.address() == "unix:1");
  CHECK(processes[0].local.host() == "host");
  CHECK(processes[0].network == "net");
  CHECK(processes[0].pid == 7);
  CHECK(processes[0].held_generation == 3);
  CHECK(processes[0].past.empty());
  CHECK(processes.Holds(0, 1));
  processes.Confirm(0);
  processes.TakeForGone(0);
  processes.Claim(Process(9));
  processes.Register(Process(2));
  CHECK_FALSE(processes[0].confirmed);
  CHECK_FALSE(processes[0].seemed_gone);
  CHECK_FALSE(processes[0].held_generation.has_value());
  CHECK_FALSE(processes[0].claim.has_value());
  CHECK(processes[0].past == std::vector<uint64_t>{1});
  CHECK_FALSE(processes.Holds(0, 1));
  CHECK(processes.Holds(0, 2));
}

TEST_CASE("server processes: those of before are remembered up to a bound, the newest ones") {
  ServerProcesses processes(1);
  for (uint64_t nonce = 1; nonce <= 66; ++nonce) processes.Register(Process(nonce));
  CHECK(processes[0].past.size() == 64);
  CHECK(processes[0].past.front() == 2);
  CHECK(processes[0].past.back() == 65);
  processes.Confirm(0);
  // A process that does not report its nonce.
  CHECK_FALSE(processes.Past(Process(0)));
}

TEST_CASE("server processes: a claim is taken once, by who made it, the newest counts") {
  ServerProcesses processes(1);
  processes.Register(Process(1));
  CHECK_FALSE(processes.TakeClaim(0, 5));
  processes.Claim(Process(5));
  processes.Claim(Process(6));
  CHECK_FALSE(processes.TakeClaim(0, 5));
  const auto claim = processes.TakeClaim(0, 6);
  REQUIRE(claim);
  CHECK(claim->nonce() == 6);
  CHECK_FALSE(processes.TakeClaim(0, 6));
}

TEST_CASE("server processes: of one that is forgotten only its address is left") {
  ServerProcesses processes(1);
  processes.Register(Process(4));
  v1::RegisterServerRequest request = Process(5);
  request.set_held_generation(3);
  processes.Register(request);
  processes.Claim(Process(6));
  processes.Forget(0);
  CHECK(processes[0].nonce == 0);
  CHECK(processes[0].past.empty());
  CHECK_FALSE(processes[0].claim.has_value());
  CHECK_FALSE(processes[0].held_generation.has_value());
  CHECK(processes[0].address == "server0:1");
  CHECK_FALSE(processes.Holds(0, 5));
}

}  // namespace
}  // namespace leeway::server_processes
