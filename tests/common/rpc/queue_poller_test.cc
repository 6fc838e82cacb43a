#include "common/rpc/queue_poller.h"

#include <grpcpp/alarm.h>

#include "tests/catch.h"

namespace leeway::queue_poller {
namespace {

using std::chrono::microseconds;
using Queue = grpc::CompletionQueue;

gpr_timespec In(int64_t us) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(us, GPR_TIMESPAN));
}

class Polled {
 public:
  explicit Polled(bool alone = true) : poller(&queue_, alone) {}
  ~Polled() {
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  // An event comes after this time.
  void EventIn(int64_t us) { alarm_.Set(&queue_, In(us), this); }
  // An event is there at once.
  void EventNow() {
    EventIn(1'000'000'000);
    alarm_.Cancel();
  }
  Queue::NextStatus Next(gpr_timespec deadline) {
    void* tag = nullptr;
    bool ok = false;
    const Queue::NextStatus status = poller.Next(&tag, &ok, deadline);
    if (status == Queue::GOT_EVENT) CHECK(tag == this);
    return status;
  }
  void CountAtRest() {
    poller.AtRest([this] { ++at_rest; });
  }

 private:
  Queue queue_;
  grpc::Alarm alarm_;

 public:
  QueuePoller poller;
  int at_rest = 0;
};

TEST_CASE("queue poller: what can wait runs once, before the thread waits") {
  Polled polled;
  polled.CountAtRest();
  polled.CountAtRest();
  CHECK(polled.at_rest == 0);
  CHECK(polled.Next(In(0)) == Queue::TIMEOUT);
  CHECK(polled.at_rest == 2);
  CHECK(polled.Next(In(0)) == Queue::TIMEOUT);
  CHECK(polled.at_rest == 2);
}

TEST_CASE("queue poller: work that puts off more has that done before the thread waits, too") {
  Polled polled;
  polled.poller.AtRest([&] { polled.CountAtRest(); });
  CHECK(polled.Next(In(0)) == Queue::TIMEOUT);
  CHECK(polled.at_rest == 1);
}

// Tried for some time only, because a thread that is not scheduled may see the other work first.
TEST_CASE("queue poller: what is ready goes before what can wait") {
  bool event_first = false;
  for (int i = 0; i < 1000 && !event_first; ++i) {
    Polled polled;
    polled.EventNow();
    polled.CountAtRest();
    CHECK(polled.Next(gpr_inf_future(GPR_CLOCK_MONOTONIC)) == Queue::GOT_EVENT);
    event_first = polled.at_rest == 0;
    CHECK(polled.Next(In(0)) == Queue::TIMEOUT);
    CHECK(polled.at_rest == 1);
  }
  CHECK(event_first);
}

TEST_CASE(
    "queue poller: who looks again and again misses no event, and waits no longer than asked") {
  const bool alone = GENERATE(true, false), small = GENERATE(true, false);
  Polled polled(alone);
  polled.poller.ExpectSmall(small);
  for (const int64_t us : {0, 0, 10, 20, 40, 60, 80, 500, 0, 5000, 0, 10}) {
    polled.EventIn(us);
    CHECK(polled.Next(gpr_inf_future(GPR_CLOCK_MONOTONIC)) == Queue::GOT_EVENT);
  }
  CHECK(polled.Next(In(200)) == Queue::TIMEOUT);
}

TEST_CASE("brief waits: after a short wait the next is expected to be short, else it is not") {
  BriefWaits waits;
  CHECK_FALSE(waits.expected());
  const Time t = Time(std::chrono::seconds(1));
  waits.Waited(t, t + microseconds(99), false);
  CHECK(waits.expected());
  waits.Looked(t, t + microseconds(50));
  CHECK(waits.expected());
  waits.Waited(t, t + microseconds(100), false);
  CHECK_FALSE(waits.expected());
  waits.Waited(t, t + microseconds(10), true);
  CHECK_FALSE(waits.expected());
}

TEST_CASE("brief waits: none is expected for a while after somebody else had the processor") {
  BriefWaits waits;
  Time t = Time(std::chrono::seconds(1));
  waits.Waited(t, t + microseconds(10), false);
  waits.Looked(t, t + microseconds(201));
  CHECK_FALSE(waits.expected());
  t += microseconds(201) + BriefWaits::kCalm;
  waits.Waited(t - microseconds(20), t - microseconds(10), false);
  CHECK_FALSE(waits.expected());
  waits.Waited(t - microseconds(10), t, false);
  CHECK(waits.expected());
}

}  // namespace
}  // namespace leeway::queue_poller
