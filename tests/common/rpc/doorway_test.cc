// In these tests sockets are only numbers.
#include "common/rpc/doorway.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/catch.h"
#include "tests/log_capture.h"

namespace leeway::doorway {
namespace {

const Time kOpening{std::chrono::hours(1)};

Time After(int ms) { return kOpening + std::chrono::milliseconds(ms); }

struct Rig {
  void Come(int socket, int ms) {
    doorway.Come(socket, absl::StrCat("ipv4:10.0.0.9:", socket), After(ms));
  }
  testing::LogCapture log;
  std::vector<int> in, refused;
  std::set<int> gone;
  ConnectionTable table{
      {.most = 2},
      {.is_open = [](int /*socket*/, const std::string& /*peer*/) { return true; },
       .end = [](int /*socket*/) {},
       .traffic = [](int /*socket*/) { return ConnectionTable::Traffic{}; }}};
  Doorway doorway{&table,
                  {.hand_over = [this](int socket) { in.push_back(socket); },
                   .refuse = [this](int socket) { refused.push_back(socket); },
                   .is_gone = [this](int socket) { return gone.contains(socket); }}};
};

}  // namespace

TEST_CASE("Who comes in a crowd waits for a turn, and is let in in the order of arrival") {
  Rig rig;
  for (int socket = 1; socket <= 4; ++socket) rig.Come(socket, 0);
  CHECK(rig.in == std::vector{1, 2});
  CHECK(rig.doorway.Look(After(9)));
  CHECK(rig.in == std::vector{1, 2});
  CHECK(rig.doorway.Look(After(19)));
  CHECK(rig.in == std::vector{1, 2, 3});
  CHECK_FALSE(rig.doorway.Look(After(30)));
  CHECK(rig.in == std::vector{1, 2, 3, 4});
  CHECK(rig.refused.empty());
  // Another host has turns of its own.
  rig.Come(5, 30);
  rig.doorway.Come(6, "ipv4:10.0.0.8:6", After(30));
  CHECK(rig.in == std::vector{1, 2, 3, 4, 6});
}

TEST_CASE("Who has hung up meanwhile takes nobody's turn") {
  Rig rig;
  for (int socket = 1; socket <= 4; ++socket) rig.Come(socket, 0);
  rig.gone = {3};
  CHECK_FALSE(rig.doorway.Look(After(11)));
  CHECK(rig.in == std::vector{1, 2, 4});
  CHECK(rig.refused == std::vector{3});
}

TEST_CASE("Few may wait: who has waited for longest makes room, and the log says so") {
  Rig rig;
  const int most = static_cast<int>(Doorway::kWaitingMost);
  for (int socket = 1; socket <= 2 + most + 2; ++socket) rig.Come(socket, 0);
  CHECK(rig.refused == std::vector{3, 4});
  CHECK(rig.table.of_crowds() == 2);
  CHECK_THAT(rig.log.text(), Catch::Contains("ipv4:10.0.0.9 opens more than 100 connections"));
}

}  // namespace leeway::doorway
