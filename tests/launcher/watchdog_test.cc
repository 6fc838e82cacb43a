#include "launcher/supervision/watchdog.h"

#include "tests/catch.h"

namespace leeway::watchdog {
namespace {

using std::chrono::seconds;

constexpr pid_t kServer0 = 100;
constexpr pid_t kServer1 = 101;
constexpr pid_t kWorker1 = 201;

// A job of two servers and two workers, which is checked once a second.
class Rig {
 public:
  explicit Rig(Watchdog::Options options = {}) : dog_(options) {
    for (const uint32_t i : {0u, 1u}) {
      status_.add_servers()->set_index(i);
      status_.mutable_servers(i)->set_state("ready");
      status_.mutable_servers(i)->set_pid(kServer0 + i);
      status_.add_workers()->set_rank(i);
      status_.mutable_workers(i)->set_state("running");
      status_.mutable_workers(i)->set_pid(kWorker1 - 1 + i);
    }
    dog_.CoordinatorBegins(kServer0, now_);
  }

  v1::ServerStatus& server(int index) { return *status_.mutable_servers(index); }
  v1::WorkerStatus& worker(int rank) { return *status_.mutable_workers(rank); }
  Watchdog& dog() { return dog_; }
  Time now() const { return now_; }

  // Returns after how many of these seconds a process is found hung; 0: no process is.
  int HungAfter(int seconds, bool answers = true) {
    for (int i = 1; i <= seconds; ++i) {
      now_ += std::chrono::seconds(1);
      hung_ = dog_.Check(now_);
      if (answers) {
        for (auto& each : dog_.Answered(status_, now_)) hung_.push_back(std::move(each));
      }
      if (!hung_.empty()) return i;
    }
    return 0;
  }
  const std::vector<Watchdog::Hung>& hung() const { return hung_; }
  void Pause(Duration pause) { now_ += pause; }

 private:
  Watchdog dog_;
  v1::JobStatus status_;
  std::vector<Watchdog::Hung> hung_;
  Time now_{};
};

const Watchdog::Life kFirst{.server = true, .number = 0, .pid = kServer0};
const Watchdog::Life kSecond{.server = true, .number = 1, .pid = kServer1};
const Watchdog::Life kWorker{.server = false, .number = 1, .pid = kWorker1};

}  // namespace

TEST_CASE("Nobody hangs whom the coordinator hears, however long a job lasts") {
  Rig rig;
  CHECK(rig.HungAfter(10'000) == 0);
  // The worker is as slow as possible, but is heard.
  rig.worker(1).set_waiting("for the others");
  rig.worker(1).set_seconds_since_heartbeat(9);
  CHECK(rig.HungAfter(10'000) == 0);
}

TEST_CASE("Who is lost for a lease beyond the one that is over hangs") {
  for (const bool server : {true, false}) {
    Rig rig;
    REQUIRE(rig.HungAfter(100) == 0);
    server ? rig.server(1).set_state("lost") : rig.worker(1).set_state("lost");
    CHECK(rig.HungAfter(100) == 11);
    REQUIRE(rig.hung().size() == 1);
    CHECK(rig.hung()[0].life == (server ? kSecond : kWorker));
    CHECK(rig.hung()[0].why == "the coordinator has not heard it for 20 s");
    // A process that was found is only found again if it stays hung.
    CHECK(rig.HungAfter(9) == 0);
    CHECK(rig.HungAfter(100) == 1);
  }
}

TEST_CASE("Who is lost and comes back in time does not hang, and begins anew") {
  Rig rig;
  for (int i = 0; i < 100; ++i) {
    rig.worker(1).set_state("lost");
    CHECK(rig.HungAfter(10) == 0);
    rig.worker(1).set_state("running");
    CHECK(rig.HungAfter(1) == 0);
  }
}

TEST_CASE("A new life is not measured by the one before it, nor one that has not registered") {
  Rig rig;
  rig.server(1).set_state("lost");
  CHECK(rig.HungAfter(10) == 0);
  rig.server(1).set_pid(kServer1 + 1000);
  CHECK(rig.HungAfter(10) == 0);
  CHECK(rig.HungAfter(1) == 1);
  CHECK(rig.hung()[0].life.pid == kServer1 + 1000);
  rig.server(1).set_state("ready");
  rig.worker(1).set_pid(0);
  rig.worker(1).set_state("waiting");
  CHECK(rig.HungAfter(1000) == 0);
}

TEST_CASE("A server that does not come back to a coordinator that was started anew hangs") {
  Rig rig;
  REQUIRE(rig.HungAfter(10) == 0);
  rig.server(1).set_state("waiting");
  rig.server(1).set_pid(0);
  CHECK(rig.HungAfter(100) == 11);
  CHECK(rig.hung()[0].life == kSecond);
  // A process that was never there is still loading.
  Rig fresh;
  fresh.server(1).set_state("waiting");
  fresh.server(1).set_pid(0);
  CHECK(fresh.HungAfter(1000) == 0);
}

TEST_CASE("The same process id in another role or place is another life") {
  Rig rig;
  rig.server(1).set_state("lost");
  CHECK(rig.HungAfter(10) == 0);
  rig.server(1).set_state("ready");
  rig.worker(1).set_pid(kServer1);
  rig.worker(1).set_state("lost");
  CHECK(rig.HungAfter(10) == 0);
}

TEST_CASE("Server 0 hangs when it does not answer any more") {
  Rig rig;
  REQUIRE(rig.HungAfter(100) == 0);
  CHECK(rig.HungAfter(100, false) == 20);
  REQUIRE(rig.hung().size() == 1);
  CHECK(rig.hung()[0].life == kFirst);
  CHECK(rig.hung()[0].why == "it has not answered for 20 s");
  // It is found once.
  CHECK(rig.HungAfter(1000, false) == 0);
}

TEST_CASE("A server 0 that answers late, or has just begun, does not hang") {
  Rig rig;
  // Server 0 loads a model: limits.start_seconds applies.
  CHECK(rig.HungAfter(118, false) == 0);
  for (int i = 0; i < 100; ++i) {
    CHECK(rig.HungAfter(1) == 0);
    CHECK(rig.HungAfter(18, false) == 0);
  }
  rig.dog().CoordinatorEnds();
  CHECK(rig.HungAfter(1000, false) == 0);
  rig.dog().CoordinatorBegins(kServer0 + 1000, rig.now());
  CHECK(rig.HungAfter(119, false) == 0);
  CHECK(rig.HungAfter(100, false) == 1);
  CHECK(rig.hung()[0].life.pid == kServer0 + 1000);
}

TEST_CASE("A launcher that stood still, or a machine that was suspended, kills nobody") {
  Rig rig;
  REQUIRE(rig.HungAfter(100) == 0);
  for (int i = 0; i < 5; ++i) {
    // The whole machine slept; the first answer after that says that all are lost.
    rig.Pause(std::chrono::hours(8));
    rig.server(1).set_state("lost");
    rig.worker(1).set_state("lost");
    CHECK(rig.HungAfter(5) == 0);
    rig.server(1).set_state("ready");
    rig.worker(1).set_state("running");
    CHECK(rig.HungAfter(1) == 0);
    // At first there is no answer.
    rig.Pause(std::chrono::hours(8));
    CHECK(rig.HungAfter(5, false) == 0);
    CHECK(rig.HungAfter(1) == 0);
  }
  // For a process that was lost before the pause, the time continues after it.
  rig.worker(1).set_state("lost");
  CHECK(rig.HungAfter(5) == 0);
  rig.Pause(std::chrono::hours(8));
  CHECK(rig.HungAfter(100) == 5);
}

TEST_CASE("A lease that is shorter than hiccups are is not taken at its word, a long one is") {
  for (const double lease : {0.5, 2.0, 5.0, 30.0}) {
    CAPTURE(lease);
    Rig rig({.lease = FromSeconds(lease)});
    REQUIRE(rig.HungAfter(1) == 0);
    rig.worker(1).set_state("lost");
    CHECK(rig.HungAfter(100) == static_cast<int>(std::max(lease, 5.0)) + 1);
    rig.worker(1).set_state("running");
    REQUIRE(rig.HungAfter(1) == 0);
    CHECK(rig.HungAfter(100, false) == 2 * static_cast<int>(std::max(lease, 5.0)));
  }
}

}  // namespace leeway::watchdog
