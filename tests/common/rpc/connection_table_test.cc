// Which connections go when there is no room: strangers, the oldest first, and never an admitted
// peer.
#include "common/rpc/connection_table.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/catch.h"
#include "tests/log_capture.h"

namespace leeway::connection_table {
namespace {

constexpr Time kOpening{};

// Sockets by name, as a system has them.
struct System {
  explicit System(uint64_t stranger_bytes = 1000) : table(LimitsOf(stranger_bytes), Sockets()) {}
  bool Connect(int socket, const std::string& peer, Time now = kOpening) {
    open[socket] = peer;
    const bool kept = table.MayCome(peer, now) && table.Add(socket, peer, now);
    if (!kept) open.erase(socket);
    return kept;
  }

  std::map<int, std::string> open;
  std::map<int, uint64_t> brought, sent;
  static ConnectionTable::Limits LimitsOf(uint64_t stranger_bytes) {
    return {.most = 3, .stranger_bytes = stranger_bytes};
  }
  ConnectionTable::Sockets Sockets() {
    return {.is_open =
                [this](int socket, const std::string& peer) {
                  return open.contains(socket) && open[socket] == peer;
                },
            .end = [this](int socket) { open.erase(socket); },
            .traffic = [this](int socket) -> ConnectionTable::Traffic {
              return {.received = brought[socket], .sent = sent[socket]};
            }};
  }
  ConnectionTable table;
};

std::set<std::string> Peers(const System& system) {
  std::set<std::string> peers;
  for (const auto& [socket, peer] : system.open) peers.insert(peer);
  return peers;
}

}  // namespace

TEST_CASE("Strangers displace the oldest stranger, and nobody who was let in") {
  System system;
  CHECK(system.Connect(5, "worker:1"));
  CHECK(system.Connect(6, "stranger-1:1"));
  system.table.LetIn("worker:1");
  for (int i = 2; i < 50; ++i) CHECK(system.Connect(6 + i, absl::StrCat("stranger-", i, ":1")));
  CHECK(Peers(system) == std::set<std::string>{"worker:1", "stranger-48:1", "stranger-49:1"});
  CHECK(system.table.turned_away() == 47);
  // In the middle of the crowd a peer is admitted, and stays.
  CHECK(system.Connect(100, "worker:2"));
  system.table.LetIn("worker:2");
  for (int i = 50; i < 60; ++i) CHECK(system.Connect(200 + i, absl::StrCat("stranger-", i, ":1")));
  CHECK(Peers(system) == std::set<std::string>{"worker:1", "worker:2", "stranger-59:1"});
}

TEST_CASE("Where all were let in, the new one is refused until there is room") {
  System system;
  for (int i = 0; i < 3; ++i) {
    const std::string peer = absl::StrCat("worker:", i);
    CHECK(system.Connect(i, peer));
    system.table.LetIn(peer);
  }
  CHECK_FALSE(system.Connect(9, "worker:9"));
  system.table.SetMost(4);
  CHECK(system.Connect(9, "worker:9"));
  CHECK(system.table.turned_away() == 1);
  system.table.LetIn("worker:9");
  CHECK(system.open.size() == 4);
}

TEST_CASE("A connection that is gone takes no room, whoever closed it") {
  System system;
  for (int i = 0; i < 3; ++i) {
    CHECK(system.Connect(i, absl::StrCat("worker:", i)));
    system.table.LetIn(absl::StrCat("worker:", i));
  }
  system.open.erase(1);
  CHECK(system.Connect(7, "worker:7"));
  system.table.LetIn("worker:7");
  // All entries are checked at most ten times a second.
  system.open.erase(2);
  CHECK_FALSE(system.Connect(8, "worker:8"));
  CHECK(system.Connect(8, "worker:8", kOpening + std::chrono::milliseconds(100)));
  // The number of a socket is used again: it belongs to another connection.
  system.open.erase(7);
  CHECK(system.Connect(7, "worker:70", kOpening + std::chrono::milliseconds(101)));
  CHECK(Peers(system) == std::set<std::string>{"worker:0", "worker:70", "worker:8"});
}

TEST_CASE("A stranger brings no more than it may, and who was let in brings what it wants") {
  const testing::LogCapture log;
  System system;
  CHECK_FALSE(system.table.EndTalkers(kOpening));
  CHECK(system.Connect(1, "ipv4:10.0.0.9:1"));
  CHECK(system.Connect(2, "worker:2"));
  CHECK(system.Connect(3, "ipv4:10.0.0.9:3"));
  system.table.LetIn("worker:2");
  system.brought = {{1, 1000}, {2, 1 << 30}, {3, 1001}};
  CHECK(system.table.EndTalkers(kOpening));
  CHECK(Peers(system) == std::set<std::string>{"ipv4:10.0.0.9:1", "worker:2"});
  CHECK_THAT(
      log.text(),
      Catch::Contains("closed a connection from ipv4:10.0.0.9: none of its calls was admitted"));
  // A connection that is gone, and whose socket's number another connection has.
  system.open[1] = "another:1";
  system.brought[1] = 5000;
  CHECK_FALSE(system.table.EndTalkers(kOpening));
  CHECK(system.open.contains(1));
  CHECK(system.table.talkers() == 1);
}

TEST_CASE("Who brings much has a second to be let in, and its host then a tenth, for a minute") {
  const testing::LogCapture log;
  constexpr auto kMs = [](int ms) { return kOpening + std::chrono::milliseconds(ms); };
  System system(ConnectionTable::kStrangerBytes);
  CHECK(system.Connect(1, "ipv4:10.0.0.9:1"));
  CHECK(system.Connect(2, "worker:2"));
  system.brought = {{1, ConnectionTable::kStrangerBytes}, {2, ConnectionTable::kStrangerBytes}};
  CHECK(system.table.EndTalkers(kMs(0)));
  CHECK(system.table.EndTalkers(kMs(999)));
  system.table.LetIn("worker:2");
  CHECK_FALSE(system.table.EndTalkers(kMs(1000)));
  CHECK(Peers(system) == std::set<std::string>{"worker:2"});
  CHECK(system.Connect(3, "ipv4:10.0.0.9:2", kMs(2000)));
  system.brought[3] = ConnectionTable::kLoudBytes;
  CHECK(system.table.EndTalkers(kMs(2000)));
  system.brought[3] = ConnectionTable::kLoudBytes + 1;
  CHECK(system.table.EndTalkers(kMs(3000)));
  CHECK(system.table.EndTalkers(kMs(3099)));
  CHECK_FALSE(system.table.EndTalkers(kMs(3100)));
  CHECK(system.Connect(4, "ipv4:10.0.0.9:3", kMs(70'000)));
  system.brought[4] = ConnectionTable::kStrangerBytes;
  CHECK(system.table.EndTalkers(kMs(70'000)));
  CHECK(system.table.EndTalkers(kMs(70'999)));
  CHECK_FALSE(system.table.EndTalkers(kMs(71'000)));
  CHECK(system.table.talkers() == 3);
}

// Calls that are begun and broken off; ten thousand of them are a megabyte.
TEST_CASE("A host of three that were ended brings little, for a minute, and others what they may") {
  const testing::LogCapture log;
  System system(ConnectionTable::kStrangerBytes);
  system.table.SetMost(10);
  int socket = 0;
  const auto brings = [&](const std::string& host, uint64_t bytes, int ms) {
    const Time now = kOpening + std::chrono::milliseconds(ms);
    ++socket;
    REQUIRE(system.Connect(socket, absl::StrCat(host, ":", socket), now));
    system.brought[socket] = bytes;
    system.table.EndTalkers(now);
    return system.open.contains(socket);
  };
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE(brings("ipv4:10.0.0.9", ConnectionTable::kStrangerBytes + 1, 500 * i));
  }
  CHECK(brings("ipv4:10.0.0.9", ConnectionTable::kLoudBytes, 1000));
  CHECK_FALSE(brings("ipv4:10.0.0.9", ConnectionTable::kStrangerBytes + 1, 1500));
  CHECK(brings("ipv4:10.0.0.9", ConnectionTable::kKnownBytes, 2000));
  CHECK_FALSE(brings("ipv4:10.0.0.9", ConnectionTable::kKnownBytes + 1, 2500));
  CHECK(brings("ipv4:10.0.0.8", ConnectionTable::kStrangerBytes, 2500));
  CHECK(brings("ipv4:10.0.0.9", ConnectionTable::kLoudBytes, 63'000));
}

// Pings whose answers are not read.
TEST_CASE("A stranger is sent no more than a peer needs that may call") {
  const testing::LogCapture log;
  System system;
  CHECK(system.Connect(1, "ipv4:10.0.0.9:1"));
  CHECK(system.Connect(2, "worker:2"));
  system.table.LetIn("worker:2");
  system.sent = {{1, ConnectionTable::kAnswerBytes}, {2, 1 << 30}};
  CHECK(system.table.EndTalkers(kOpening));
  ++system.sent[1];
  CHECK_FALSE(system.table.EndTalkers(kOpening));
  CHECK(Peers(system) == std::set<std::string>{"worker:2"});
  CHECK_THAT(log.text(), Catch::Contains("sent, requested or begun more"));
}

TEST_CASE("What is turned away is in the log once a minute, with its host") {
  const testing::LogCapture log;
  System system;
  for (int i = 0; i < 100; ++i) CHECK(system.Connect(i, absl::StrCat("ipv4:10.0.0.", i, ":9")));
  CHECK_THAT(log.text(), Catch::Contains("closed a connection from ipv4:10.0.0.0 (1 so far)"));
  CHECK(std::ranges::count(log.text(), '\n') == 1);
  CHECK(system.Connect(100, "ipv4:10.0.0.100:9", kOpening + std::chrono::minutes(1)));
  CHECK_THAT(log.text(), Catch::Contains("(98 so far)"));
}

TEST_CASE("A stranger is ended by name, whoever was let in is not, and its host has fewer left") {
  const testing::LogCapture log;
  System system;
  CHECK(system.Connect(1, "ipv4:10.0.0.9:1"));
  CHECK(system.Connect(2, "ipv4:10.0.0.9:2"));
  CHECK(system.Connect(3, "ipv4:10.0.0.9:3"));
  system.table.LetIn("ipv4:10.0.0.9:2");
  CHECK_FALSE(system.table.EndStranger("ipv4:10.0.0.9:2", kOpening));
  CHECK_FALSE(system.table.EndStranger("ipv4:10.0.0.9:7", kOpening));
  CHECK(system.table.EndStranger("ipv4:10.0.0.9:1", kOpening));
  CHECK_FALSE(system.table.EndStranger("ipv4:10.0.0.9:1", kOpening));
  CHECK(Peers(system) == std::set<std::string>{"ipv4:10.0.0.9:2", "ipv4:10.0.0.9:3"});
  CHECK(system.table.talkers() == 1);
  CHECK_FALSE(system.Connect(4, "ipv4:10.0.0.9:4"));
  CHECK_FALSE(system.Connect(4, "ipv4:10.0.0.9:4", kOpening + std::chrono::milliseconds(90)));
  CHECK(system.Connect(4, "ipv4:10.0.0.9:4", kOpening + std::chrono::milliseconds(110)));
  CHECK(system.Connect(5, "ipv4:10.0.0.8:5"));
}

// Connections that are opened one after the other, as fast as possible.
TEST_CASE("A host opens as many connections as there may be, then so many a second") {
  const testing::LogCapture log;
  System system;
  int socket = 0;
  const auto connect = [&](const std::string& host, int ms) {
    ++socket;
    return system.Connect(socket, absl::StrCat(host, ":", socket),
                          kOpening + std::chrono::milliseconds(ms));
  };
  for (int i = 0; i < 3; ++i) CHECK(connect("ipv4:10.0.0.9", 0));
  CHECK_FALSE(connect("ipv4:10.0.0.9", 9));
  CHECK(connect("ipv4:10.0.0.9", 11));
  CHECK_FALSE(connect("ipv4:10.0.0.9", 11));
  CHECK(connect("ipv4:10.0.0.8", 10));
  CHECK(system.table.turned_away() == 2);
  CHECK(system.table.of_crowds() == 0);
  for (int i = 0; i < 3; ++i) system.table.TurnAway("ipv4:10.0.0.9:1", kOpening);
  CHECK(system.table.of_crowds() == 3);
  // Connections that end for want of room have a line of their own, which does not hide other
  // lines.
  CHECK_THAT(log.text(),
             Catch::Contains("connections is reached") &&
                 Catch::Contains("ipv4:10.0.0.9 opens more than 100 connections a second without "
                                 "an admitted call: one of them was closed (1"));
  // Connections that were admitted do not count.
  CHECK(connect("ipv4:10.0.0.7", 10));
  system.table.SetMost(100);
  for (int i = 0; i < 20; ++i) {
    CHECK(connect("ipv4:10.0.0.7", 10));
    system.table.LetIn(absl::StrCat("ipv4:10.0.0.7:", socket));
  }
}

TEST_CASE("A server has room for its job, and a quarter of the files for the rest") {
  CHECK(ConnectionsMost(10, 1 << 20) == 1044);
  CHECK(ConnectionsMost(1'000'000, 4096) == 3072);
  CHECK(ConnectionsMost(0, 400) == 300);
}

}  // namespace leeway::connection_table
