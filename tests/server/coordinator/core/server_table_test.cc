#include "server/coordinator/core/server_table.h"

#include "tests/catch.h"

namespace leeway::server_table {
namespace {

using Indices = std::vector<uint32_t>;
using std::chrono::seconds;

constexpr Duration kLease = seconds(10);
constexpr Time kBegin = Time(seconds(1000));

// Servers 0 to `servers` - 1 are registered, out of four possible ones.
ServerTable Registered(uint32_t servers) {
  ServerTable table(4, servers, kLease);
  for (uint32_t i = 0; i < servers; ++i) table.Register(i, kBegin);
  return table;
}

TEST_CASE("servers: what is removed is not here, and not waited for") {
  ServerTable table = Registered(2);
  table.Remove(0);
  CHECK(table[0].state == ServerState::kRemoved);
  CHECK_FALSE(table[0].expected);
  CHECK(table.Here() == std::set<uint32_t>{1});
  CHECK(table.Missing().empty());
}

TEST_CASE("servers: one that is lost before its lease ends is back with a sign of life") {
  ServerTable table = Registered(1);
  table.MarkReady(0);
  table.Lose(0);
  CHECK(table.Here().empty());
  CHECK(table.Seen(0, kBegin));
  CHECK(table[0].state == ServerState::kRegistered);
}

TEST_CASE("servers: a lease ends after its length, not with it, and a sign of life ends that") {
  ServerTable table = Registered(2);
  table.MarkReady(1);
  CHECK_FALSE(table.Seen(0, kBegin + seconds(1)));
  CHECK(table.Expire(kBegin + kLease).empty());
  CHECK(table.Expire(kBegin + kLease + Duration(1)) == Indices{1});
  CHECK(table.Expire(kBegin + kLease + Duration(1)).empty());
  CHECK(table[1].state == ServerState::kLost);
  CHECK(table.Seen(1, kBegin + seconds(20)));
  // The new process may have other blocks.
  CHECK(table[1].state == ServerState::kRegistered);
  table.Forgive(kBegin + seconds(30));
  CHECK(table.Expire(kBegin + seconds(40)).empty());
  // Server 0 is in the coordinator's process, so it does not expire.
  CHECK(table.Expire(kBegin + seconds(41)) == Indices{1});
}

TEST_CASE("servers: each one's lease is its own, and server 0 is never silent") {
  ServerTable table = Registered(4);
  CHECK_FALSE(table.Seen(1, kBegin + seconds(5)));
  const Time late = kBegin + kLease + seconds(1);
  Silence silence;
  table.CountSilent(late, silence);
  CHECK(silence.held == 3);
  CHECK(silence.half == 3);
  CHECK(table.Expire(late) == Indices{2, 3});
}

TEST_CASE("servers: who is missing, not ready, absent and here") {
  ServerTable table(4, 3, kLease);
  CHECK(table.Missing() == Indices{0, 1, 2});
  CHECK(table.Absent() == Indices{0, 1, 2});
  table.Register(0, kBegin);
  table.Register(1, kBegin);
  table.MarkReady(1);
  CHECK(table.Missing() == Indices{2});
  CHECK(table.Unready() == Indices{0, 2});
  CHECK(table.Absent() == Indices{2});
  CHECK(table.Here() == std::set<uint32_t>{0, 1});
  // A server that was asked for later and has never come is not waited for.
  table.Want(4);
  CHECK(table.wanted() == 4);
  CHECK(table.Wanted(3));
  CHECK_FALSE(table.Wanted(4));
  CHECK(table.Missing() == Indices{2});
  CHECK(table.Absent() == Indices{2, 3});
  table.Expect(3, true);
  CHECK(table.Missing() == Indices{2, 3});
  CHECK(table.Unready() == Indices{0, 2, 3});
  table.Expect(3, false);
  table.MarkAllUnready();
  CHECK(table.Unready() == Indices{0, 1, 2});
  CHECK(table[2].state == ServerState::kWaiting);
}

TEST_CASE("servers: all are shut down once each that is here is") {
  ServerTable table = Registered(2);
  CHECK(ServerTable(2, 2, kLease).AllShutDown());
  CHECK_FALSE(table.AllShutDown());
  table.MarkShutDown(0);
  CHECK_FALSE(table.AllShutDown());
  table.Expire(kBegin + seconds(11));
  CHECK(table.AllShutDown());
  ServerTable both = Registered(2);
  both.MarkShutDown(0);
  both.MarkShutDown(1);
  CHECK(both.AllShutDown());
}

TEST_CASE("servers: every state has a name of its own") {
  using enum ServerState;
  std::set<std::string> names;
  for (const auto state : {kWaiting, kRegistered, kReady, kLost, kRemoved}) {
    names.insert(ServerStateName(state));
  }
  CHECK(names == std::set<std::string>{"waiting", "registered", "ready", "lost", "removed"});
}

}  // namespace
}  // namespace leeway::server_table
