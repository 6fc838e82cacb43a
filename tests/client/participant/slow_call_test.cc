#include "client/participant/slow_call.h"

#include <chrono>
#include <latch>
#include <thread>

#include "tests/catch.h"

namespace leeway::slow_call {
namespace {

TEST_CASE("a slow call is waited for no longer than the caller likes") {
  std::latch go(1);
  SlowCall call;
  CHECK(!call.pending());
  call.Start([&] {
    go.wait();
    return absl::UnavailableError("late");
  });
  CHECK(call.pending());
  const auto not_yet = call.Await(std::chrono::steady_clock::now());
  REQUIRE(not_yet.ok());
  CHECK(!*not_yet);
  go.count_down();
  CHECK(absl::IsUnavailable(call.Await(Time::max()).status()));
  CHECK(!call.pending());
  call.Start([] { return absl::OkStatus(); });
  CHECK(*call.Await(Time::max()));
}

TEST_CASE("a slow call without a deadline runs on its caller's thread") {
  SlowCall call;
  std::thread::id ran;
  const auto work = [&] {
    ran = std::this_thread::get_id();
    return absl::AbortedError("over");
  };
  call.Start(work, Time::max());
  CHECK(call.pending());
  CHECK(absl::IsAborted(call.Await(Time::max()).status()));
  CHECK(ran == std::this_thread::get_id());
  call.Start(work);
  CHECK(absl::IsAborted(call.Await(Time::max()).status()));
  CHECK(ran != std::this_thread::get_id());
}

TEST_CASE("a slow call ends before what it refers to") {
  std::latch done(1);
  {
    SlowCall call;
    call.Start([&] {
      done.count_down();
      return absl::OkStatus();
    });
  }
  CHECK(done.try_wait());
}

}  // namespace
}  // namespace leeway::slow_call
