#include "client/core/retry_core.h"

#include <chrono>

#include "common/retry_hint.h"
#include "tests/catch.h"

namespace leeway::retry_core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

RetryCore MakeCore(const RetryLimits& limits = {}) {
  return RetryCore(limits, RandomStream(1, RandomPurpose::kRetry));
}

TEST_CASE("Only codes that may mean a lost answer are sent again") {
  struct Row {
    absl::StatusCode code;
    bool again;
  };
  const Row row = GENERATE(
      Row{absl::StatusCode::kUnavailable, true}, Row{absl::StatusCode::kDeadlineExceeded, true},
      Row{absl::StatusCode::kCancelled, true}, Row{absl::StatusCode::kInvalidArgument, false},
      Row{absl::StatusCode::kFailedPrecondition, false}, Row{absl::StatusCode::kAborted, false},
      Row{absl::StatusCode::kResourceExhausted, false}, Row{absl::StatusCode::kInternal, false},
      Row{absl::StatusCode::kUnknown, false}, Row{absl::StatusCode::kNotFound, false});
  RetryCore core = MakeCore();
  const absl::Status status(row.code, "why");
  const RetryDecision decision = core.OnFailure(status, milliseconds(1), milliseconds(1));
  CAPTURE(status.ToString());
  CHECK(decision.error.ok() == row.again);
  if (!row.again) CHECK(decision.error == status);
}

TEST_CASE("Quick failures are followed by pauses that double up to a bound, with jitter") {
  RetryLimits limits;
  RetryCore core = MakeCore(limits);
  Duration full = limits.backoff_min;
  for (int i = 0; i < 12; ++i) {
    const RetryDecision decision =
        core.OnFailure(absl::UnavailableError("gone"), milliseconds(1), seconds(1));
    REQUIRE(decision.error.ok());
    CAPTURE(i, Seconds(decision.delay), Seconds(full));
    CHECK(Seconds(decision.delay) >= 0.5 * Seconds(full));
    CHECK(decision.delay < full);
    full = std::min(2 * full, limits.backoff_max);
  }
}

TEST_CASE("A hint when to send again is waited for, up to a bound, and refused again longer") {
  RetryLimits limits;
  RetryCore core = MakeCore(limits);
  const absl::Status full = absl::ResourceExhaustedError("no room");
  const absl::Status hinted = WithRetryHint(full, milliseconds(300));
  CHECK(core.OnFailure(hinted, milliseconds(1), seconds(1)).delay == milliseconds(300));
  for (int i = 0; i < 10; ++i) core.OnFailure(hinted, milliseconds(1), seconds(1));
  CHECK(core.OnFailure(hinted, milliseconds(1), seconds(1)).delay >= limits.backoff_max / 2);
  CHECK(core.told() == "no room");
  const absl::Status absurd = WithRetryHint(full, std::chrono::hours(1));
  CHECK(core.OnFailure(absurd, milliseconds(1), seconds(1)).delay == limits.hint_max);
  const RetryDecision last = core.OnFailure(hinted, milliseconds(1), limits.total);
  CHECK(absl::IsDeadlineExceeded(last.error));
  CHECK(last.error.message() ==
        "given up after 600 s (limits.exchange_seconds is 600); last answer: no room");
}

TEST_CASE("A hint is waited for also where the attempt took long: its upload did") {
  RetryCore core = MakeCore(RetryLimits());
  const absl::Status hinted =
      WithRetryHint(absl::ResourceExhaustedError("no room"), milliseconds(300));
  CHECK(core.OnFailure(hinted, seconds(2), seconds(2)).delay >= milliseconds(300));
}

TEST_CASE("What is exhausted without a hint is final: a full disk does not empty itself") {
  RetryCore core = MakeCore(RetryLimits());
  const absl::Status full = absl::ResourceExhaustedError("No space left on device");
  CHECK(core.OnFailure(full, milliseconds(1), seconds(1)).error == full);
}

TEST_CASE("An attempt that the server held is repeated at once and ends a row of quick failures") {
  RetryLimits limits;
  RetryCore core = MakeCore(limits);
  const absl::Status gone = absl::UnavailableError("gone");
  for (int i = 0; i < 8; ++i) core.OnFailure(gone, milliseconds(1), seconds(1));
  const RetryDecision held = core.OnFailure(gone, seconds(2), seconds(3));
  CHECK(held.error.ok());
  CHECK(held.delay == Duration::zero());
  CHECK(core.OnFailure(gone, milliseconds(1), seconds(3)).delay < limits.backoff_min);
}

TEST_CASE("Past the limit a call is given up with the last answer's text") {
  RetryLimits limits;
  limits.total = seconds(30);
  RetryCore core = MakeCore(limits);
  const absl::Status waiting = absl::UnavailableError("block 3 clock 17: waiting for worker 2");
  CHECK(core.OnFailure(waiting, seconds(2), seconds(29)).error.ok());
  const RetryDecision decision = core.OnFailure(waiting, seconds(2), seconds(31));
  CHECK(decision.error.code() == absl::StatusCode::kDeadlineExceeded);
  CHECK_THAT(
      std::string(decision.error.message()),
      Catch::Contains("waiting for worker 2") && Catch::Contains("limits.exchange_seconds is 30"));
}

TEST_CASE("An attempt cut off by its own deadline does not hide who was waited for") {
  RetryLimits limits;
  limits.total = seconds(30);
  RetryCore core = MakeCore(limits);
  core.OnFailure(absl::UnavailableError("waiting for worker 1"), seconds(2), seconds(2));
  core.OnFailure(absl::UnavailableError("waiting for worker 2"), seconds(2), seconds(29));
  const RetryDecision decision =
      core.OnFailure(absl::DeadlineExceededError("Deadline Exceeded"), seconds(1), seconds(30));
  CHECK_THAT(std::string(decision.error.message()), Catch::Contains("waiting for worker 2"));
  CHECK(core.told() == "waiting for worker 2");
}

TEST_CASE("A pause does not reach beyond the limit") {
  RetryLimits limits;
  limits.total = seconds(10);
  RetryCore core = MakeCore(limits);
  const RetryDecision decision = core.OnFailure(absl::UnavailableError("gone"), milliseconds(1),
                                                seconds(10) - milliseconds(1));
  CHECK(decision.delay <= milliseconds(1));
}

}  // namespace
}  // namespace leeway::retry_core
