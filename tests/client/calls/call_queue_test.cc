#include "client/calls/call_queue.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "common/retry_hint.h"
#include "tests/catch.h"

namespace leeway::call_queue {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kMiB = 1 << 20;

// A network on which the test decides what arrives, and when.
class SlowTransport : public Transport {
 public:
  struct Sent {
    uint32_t block;
    std::shared_ptr<TransportCall> call;
  };

  void Call(uint32_t, const TransportRequest& request, Duration,
            std::shared_ptr<TransportCall> call) override {
    sent_.push_back({request.header.block(), std::move(call)});
  }
  void CallAfter(Duration, std::function<void()> callback) override {
    timers_.push_back(std::move(callback));
  }
  void Cancel() override {}
  void Close() override {}
  Time Now() const override { return now_; }

  void Pass(Duration time) { now_ += time; }
  std::deque<Sent> TakeSent() { return std::exchange(sent_, {}); }
  void RunTimers() {
    for (const auto& timer : std::exchange(timers_, {})) timer();
  }

 private:
  Time now_{};
  std::deque<Sent> sent_;
  std::deque<std::function<void()>> timers_;
};

// One call to server 0; blocks are sent in their order.
class BlockCall : public Operation {
 public:
  BlockCall(uint32_t block, uint64_t bytes) : block_(block), bytes_(bytes) {}
  uint32_t size() const override { return 1; }
  uint32_t ServerOf(uint32_t) const override { return 0; }
  uint32_t Priority(uint32_t) const override { return block_; }
  uint64_t Bytes(uint32_t) const override { return bytes_; }
  std::string Describe(uint32_t) const override { return "a call"; }
  TransportRequest Request(uint32_t) const override {
    TransportRequest request;
    request.header.set_block(block_);
    return request;
  }
  absl::Status TakeReply(uint32_t, const TransportReply&) override { return absl::OkStatus(); }

 private:
  const uint32_t block_;
  const uint64_t bytes_;
};

struct Rig {
  explicit Rig(uint32_t window = 16, uint32_t window_max = 16)
      : queue(std::move(made), 1,
              {.window = window,
               .window_max = window_max,
               .retry = {},
               .jitter = RandomStream(1, RandomPurpose::kRetry, {0, 0}),
               .goes_on = [this] { return goes_on(); }}) {}
  std::function<bool()> goes_on = [] { return false; };
  std::unique_ptr<SlowTransport> made = std::make_unique<SlowTransport>();
  SlowTransport* const transport = made.get();
  CallQueue queue;

  CallQueue::Ticket Start(uint32_t block, uint64_t bytes) {
    return queue.Start(std::make_shared<BlockCall>(block, bytes));
  }
  // The link has moved 1 MiB in 100 ms, so that two messages may be under way.
  void MakeSlow() {
    Start(5, kMiB);
    transport->Pass(milliseconds(100));
    AnswerAll();
  }
  void AnswerAll() {
    for (const auto& sent : transport->TakeSent()) sent.call->OnDone(absl::OkStatus(), {});
  }
};

TEST_CASE("Who was refused by a full server makes room for the block that it waits for") {
  Rig rig;
  rig.MakeSlow();
  // In the order in which backward finishes layers: what the server wants first comes last.
  for (uint32_t block = 10; block-- > 0;) rig.Start(block, kMiB);
  bool sent_first = false;
  for (int round = 0; round < 3 && !sent_first; ++round) {
    for (const auto& sent : rig.transport->TakeSent()) {
      sent_first |= sent.block == 0;
      if (sent.block == 0) continue;
      sent.call->OnDone(WithRetryHint(absl::ResourceExhaustedError("full"), milliseconds(20)), {});
    }
    rig.transport->Pass(milliseconds(200));
    rig.transport->RunTimers();
  }
  CHECK(sent_first);
}

TEST_CASE("Who is told what is missing waits on, until the limit or the operation's end") {
  Rig rig;
  const auto ticket = rig.Start(0, kMiB);
  const auto other = rig.Start(1, kMiB);
  auto sent = rig.transport->TakeSent();
  REQUIRE(sent.size() == 2);
  CHECK(*sent[0].call->OnMissing("waiting for worker 2") == std::chrono::seconds(40));
  CHECK(rig.queue.Waiting() == "waiting for worker 2");
  // The call is not answered, but the link is busy: the last answer stands.
  rig.transport->Pass(std::chrono::seconds(590));
  CHECK(*sent[0].call->OnMissing("") == std::chrono::seconds(10));
  CHECK(rig.queue.Waiting() == "waiting for worker 2");
  rig.transport->Pass(std::chrono::seconds(10));
  CHECK_FALSE(sent[0].call->OnMissing("waiting for worker 3").has_value());
  sent[0].call->OnDone(absl::UnavailableError("waiting for worker 3"), {});
  const absl::Status given_up = rig.queue.Wait(ticket, Time::max());
  CHECK(absl::IsDeadlineExceeded(given_up));
  CHECK_THAT(std::string(given_up.message()), Catch::Contains("waiting for worker 3"));
  // A call that was broken off does not wait any more, and is not sent again.
  rig.queue.Cancel();
  CHECK_FALSE(sent[1].call->OnMissing("waiting for worker 2").has_value());
  sent[1].call->OnDone(absl::UnavailableError("waiting for worker 2"), {});
  CHECK(rig.transport->TakeSent().empty());
  CHECK(absl::IsCancelled(rig.queue.Wait(other, Time::max())));
}

TEST_CASE("Who waits for somebody that is heard waits on beyond the limit, and no longer") {
  Rig rig;
  bool heard = true;
  rig.goes_on = [&heard] { return heard; };
  const auto ticket = rig.Start(0, kMiB);
  auto sent = rig.transport->TakeSent();
  for (int i = 0; i < 4; ++i) {
    rig.transport->Pass(std::chrono::seconds(590));
    CHECK(*sent[0].call->OnMissing("waiting for worker 2") == std::chrono::seconds(40));
  }
  // If the server does not say for whom a call waits, it is not known to wait for other workers.
  rig.transport->Pass(std::chrono::seconds(590));
  CHECK(*sent[0].call->OnMissing("") == std::chrono::seconds(10));
  heard = false;
  rig.transport->Pass(std::chrono::seconds(10));
  CHECK_FALSE(sent[0].call->OnMissing("waiting for worker 2").has_value());
  sent[0].call->OnDone(absl::UnavailableError("waiting for worker 2"), {});
  CHECK(absl::IsDeadlineExceeded(rig.queue.Wait(ticket, Time::max())));
}

TEST_CASE("More calls than the window are in flight where a link takes more to be full") {
  // A message takes 8 ms of the link, and a tenth of a second there and back, or no time.
  const Duration round_trip = milliseconds(GENERATE(0, 100));
  const uint32_t window_max = GENERATE(8, 512);
  Rig rig(8, window_max);
  struct OnLink {
    Time arrives;
    std::shared_ptr<TransportCall> call;
  };
  std::deque<OnLink> link;
  Time free{};
  size_t most = 0;
  for (uint32_t block = 0; block < 1000; ++block) rig.Start(block, kMiB);
  for (int answered = 0; answered < 1000; ++answered) {
    for (auto& sent : rig.transport->TakeSent()) {
      free = std::max(free, rig.transport->Now()) + milliseconds(8);
      link.push_back({free + round_trip, std::move(sent.call)});
    }
    REQUIRE_FALSE(link.empty());
    // Before the link's rate is known all calls are sent at once.
    if (answered > 100) most = std::max(most, link.size());
    const OnLink first = std::move(link.front());
    link.pop_front();
    rig.transport->Pass(first.arrives - rig.transport->Now());
    first.call->OnDone(absl::OkStatus(), {});
  }
  if (round_trip == Duration::zero()) {
    CHECK(most == 2);
  } else if (window_max == 8) {
    CHECK(most == 8);
  } else {
    CHECK(most > 12);
    CHECK(most < 20);
  }
}

TEST_CASE("What brings no values does not count as being under way") {
  Rig rig;
  // This call took a while and moved nothing, as if the link were dead.
  rig.Start(5, 0);
  rig.transport->Pass(milliseconds(100));
  rig.AnswerAll();
  for (uint32_t block = 0; block < 10; ++block) rig.Start(block, 0);
  CHECK(rig.transport->TakeSent().size() == 10);
}

}  // namespace
}  // namespace leeway::call_queue
