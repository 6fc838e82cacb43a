#include "server/core/meeting_core.h"

#include "tests/catch.h"

namespace leeway::meeting_core {
namespace {

using Catch::Contains;
using Decision = MeetingCore::Decision;

Decision Decided(const absl::StatusOr<Decision>& decision) {
  REQUIRE(decision.ok());
  return *decision;
}

std::string Refused(const absl::Status& status, absl::StatusCode code) {
  CHECK(status.code() == code);
  return std::string(status.message());
}

TEST_CASE("a meeting counts once, and its repetition gets its answer") {
  MeetingCore core(7);
  const Sender first{.rank = 3, .incarnation = 2, .clock = 5};
  CHECK(Decided(core.OnMeeting(first)) == Decision::kMeet);
  // Until it has been made it may fail, and then nothing has changed.
  CHECK(Decided(core.OnMeeting(first)) == Decision::kMeet);
  core.OnMet(first);
  CHECK(Decided(core.OnMeeting(first)) == Decision::kRepeat);
  CHECK(Decided(core.OnMeeting(first)) == Decision::kRepeat);
  // Another rank's meeting of the same clock is another meeting.
  CHECK(Decided(core.OnMeeting({.rank = 4, .incarnation = 2, .clock = 5})) == Decision::kMeet);
}

TEST_CASE("only the newest meeting of a rank can be repeated, and only until its answer is there") {
  MeetingCore core(7);
  core.OnMet({.rank = 3, .incarnation = 2, .clock = 5});
  const Sender next{.rank = 3, .incarnation = 2, .clock = 8};
  CHECK(Decided(core.OnMeeting(next)) == Decision::kMeet);
  core.OnMet(next);
  CHECK_THAT(Refused(core.OnMeeting({.rank = 3, .incarnation = 2, .clock = 5}).status(),
                     absl::StatusCode::kFailedPrecondition),
             Contains("worker 3 meets block 7 at clock 5, but has met it at clock 8 already"));
  // It has the answer of the earlier meeting, and of one that never was.
  CHECK_FALSE(*core.OnTaken({.rank = 3, .incarnation = 2, .clock = 5}));
  CHECK_FALSE(*core.OnTaken({.rank = 3, .incarnation = 2, .clock = 9}));
  CHECK(Decided(core.OnMeeting(next)) == Decision::kRepeat);
  CHECK(*core.OnTaken(next));
  CHECK_FALSE(*core.OnTaken(next));
  CHECK_THAT(Refused(core.OnMeeting(next).status(), absl::StatusCode::kFailedPrecondition),
             Contains("has said that it has the answer"));
  CHECK(Decided(core.OnMeeting({.rank = 3, .incarnation = 2, .clock = 9})) == Decision::kMeet);
}

TEST_CASE("a newer life meets anew, at any clock, and the older one must stop") {
  MeetingCore core(7);
  const Sender old{.rank = 3, .incarnation = 2, .clock = 5};
  core.OnMet(old);
  const Sender young{.rank = 3, .incarnation = 3, .clock = 4};
  CHECK_FALSE(*core.OnTaken(young));
  CHECK(Decided(core.OnMeeting(young)) == Decision::kMeet);
  // A life that has not met yet replaces nobody.
  CHECK(Decided(core.OnMeeting(old)) == Decision::kRepeat);
  core.OnMet(young);
  CHECK_THAT(Refused(core.OnMeeting(old).status(), absl::StatusCode::kAborted),
             Contains("worker 3 (incarnation 2) was replaced by incarnation 3"));
  CHECK(absl::IsAborted(core.OnTaken(old).status()));
  CHECK(Decided(core.OnMeeting(young)) == Decision::kRepeat);
}

}  // namespace
}  // namespace leeway::meeting_core
