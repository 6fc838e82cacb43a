// A worker whose evaluations may end the job: the coordinator has each one before training goes on.
#include <atomic>
#include <map>
#include <optional>

#include "tests/catch.h"
#include "tests/worker/trainer/worker_rig.h"

namespace leeway::early_stop {
namespace {

using testing::FakeRequest;
using testing::Rig;

constexpr char kEarly[] = "evaluation={every: {clocks: 2}, early_stop: {patience: 1}}";

// Records the clocks of evaluations that came before any contribution of the same or a later clock.
struct Order {
  explicit Order(Rig& rig) {
    rig.model->script = [this](const FakeRequest& request) {
      MutexLock lock(mutex);
      if (request.method == "PushPull") handed_in = request.header.clock();
      return absl::OkStatus();
    };
    rig.coordinator.on_heartbeat = [this](const v1::HeartbeatRequest& request,
                                          v1::HeartbeatReply& reply) {
      MutexLock lock(mutex);
      for (const v1::EvaluationMetrics& each : request.evaluations()) {
        if (!handed_in || *handed_in < each.clock()) in_time.push_back(each.clock());
        stopping |= each.clock() == stops_after;
      }
      reply.set_stop_requested(stopping);
    };
  }

  Mutex mutex;
  std::optional<uint64_t> handed_in GUARDED_BY(mutex);
  std::vector<uint64_t> in_time GUARDED_BY(mutex);
  bool stopping GUARDED_BY(mutex) = false;
  uint64_t stops_after = 0;
};

TEST_CASE("early stop: no exchange begins before the coordinator has the evaluation") {
  Rig rig({kEarly});
  Order order(rig);
  CHECK(rig.Run().exit == WorkerExit::kDone);
  MutexLock lock(order.mutex);
  CHECK(order.in_time == std::vector<uint64_t>{2, 4, 6});
}

TEST_CASE("early stop: the worker asks where to stop before it goes on, every time") {
  Rig rig({kEarly});
  Order order(rig);
  order.stops_after = 4;
  rig.coordinator.stop_at = 5;
  CHECK(rig.Run().exit == WorkerExit::kStopped);
  REQUIRE(rig.coordinator.stops().size() == 1);
  CHECK(rig.coordinator.stops()[0].clock() == 4);
  REQUIRE(rig.coordinator.leaves().size() == 1);
  CHECK(rig.coordinator.leaves()[0].clock() == 5);
}

TEST_CASE("early stop: a coordinator that is away is waited for") {
  Rig rig({kEarly});
  Order order(rig);
  std::atomic<int> refused{0};
  rig.coordinator.refuse = [&](const std::string& method) {
    if (method != "Heartbeat" || ++refused > 5) return absl::OkStatus();
    return absl::UnavailableError("starting");
  };
  CHECK(rig.Run().exit == WorkerExit::kDone);
  MutexLock lock(order.mutex);
  CHECK(order.in_time == std::vector<uint64_t>{2, 4, 6});
}

TEST_CASE("early stop: a worker makes the evaluation of the clock where it begins again") {
  for (const auto& [clock, evaluated] :
       std::map<uint64_t, std::vector<uint64_t>>{{0, {2, 4, 6}}, {3, {4, 6}}, {4, {4, 6}}}) {
    Rig rig({kEarly});
    rig.model->needs_initialize = clock == 0;
    rig.model->attach_clock = clock;
    Order order(rig);
    CHECK(rig.Run().exit == WorkerExit::kDone);
    MutexLock lock(order.mutex);
    CAPTURE(clock);
    CHECK(order.in_time == evaluated);
  }
}

}  // namespace
}  // namespace leeway::early_stop
