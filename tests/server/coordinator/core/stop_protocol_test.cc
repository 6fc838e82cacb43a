#include "server/coordinator/core/stop_protocol.h"

#include "tests/catch.h"
#include "tests/server/coordinator/core/taken.h"

namespace leeway::stop_protocol {
namespace {

// Two running workers at these clocks.
Membership Ranks(uint64_t first, uint64_t second) {
  Membership ranks(2, 0, std::chrono::seconds(10));
  for (uint32_t i = 0; i < 2; ++i) {
    REQUIRE(ranks.Claim(i, {"host", i, i}, false, Time()).ok());
    ranks.Report(i, i == 0 ? first : second);
  }
  return ranks;
}

v1::StopAtRequest Asker(uint32_t rank, uint64_t clock) {
  v1::StopAtRequest request;
  request.set_rank(rank);
  request.set_clock(clock);
  return request;
}

TEST_CASE("stop: the first asker fixes the clock after its own, for all, once") {
  Commands commands;
  StopProtocol stop(commands);
  CHECK_FALSE(stop.told());
  const Membership ranks = Ranks(4, 5);
  CHECK(*stop.FixFor(Asker(0, 4), ranks, 100) == 5);
  CHECK(*stop.FixFor(Asker(1, 5), ranks, 100) == 5);
  CHECK(TakenEvents(commands) == Names{"stop_fixed"});
  CHECK(stop.told() == 5);
  CHECK(stop.Reached(5));
  CHECK_FALSE(stop.Reached(4));
}

TEST_CASE("stop: no clock lies beyond the job's end") {
  Commands commands;
  StopProtocol stop(commands);
  CHECK(*stop.FixFor(Asker(0, 10), Ranks(10, 10), 10) == 10);
}

TEST_CASE("stop: a question that came late fixes nothing") {
  Commands commands;
  StopProtocol stop(commands);
  const auto fixed = stop.FixFor(Asker(0, 4), Ranks(4, 6), 100);
  CHECK(absl::IsFailedPrecondition(fixed.status()));
  CHECK_FALSE(stop.clock());
  CHECK(TakenEvents(commands).empty());
}

TEST_CASE("stop: with committed sets the first clock counts, and the end of all says nothing") {
  Commands commands;
  StopProtocol stop(commands);
  CHECK(stop.FixAt(7, true) == 7);
  CHECK(TakenEvents(commands).empty());
  CHECK(stop.FixAt(9, false) == 7);
  StopProtocol other(commands);
  CHECK(other.FixAt(9, false) == 9);
  CHECK(TakenEvents(commands) == Names{"stop_fixed"});
}

TEST_CASE("stop: the clock falls and does not rise, what is broken off stops at once") {
  Commands commands;
  StopProtocol stop(commands);
  stop.Lower(6);
  stop.Lower(8);
  CHECK(stop.clock() == 6);
  stop.Lower(5);
  CHECK(stop.told() == 5);
  stop.Abort();
  CHECK(stop.told() == 0);
  CHECK(stop.clock() == 5);
}

TEST_CASE("stop: the first failure counts, and comes before every other outcome") {
  Commands commands;
  StopProtocol stop(commands);
  CHECK(stop.Outcome(false, false) == v1::JOB_FAILED);
  CHECK(stop.Outcome(false, true) == v1::JOB_FINISHED);
  CHECK(stop.Ending() == "the job is over");
  stop.Request("");
  CHECK(stop.recorded_reason() == "somebody asked for it");
  CHECK(stop.Outcome(false, true) == v1::JOB_STOPPED);
  CHECK(stop.Outcome(true, true) == v1::JOB_FINISHED);
  CHECK(stop.Ending() == "the job was stopped: somebody asked for it");
  stop.Fail("first");
  stop.Fail("second");
  CHECK(stop.failure() == "first");
  CHECK(stop.Outcome(true, true) == v1::JOB_FAILED);
  CHECK(stop.Ending() == "the job has failed: first");
  CHECK(TakenEvents(commands) == Names{"stop_requested", "job_failing"});
}

TEST_CASE("stop: a job that ends early has finished, and says why, but nobody has asked for it") {
  Commands commands;
  StopProtocol stop(commands);
  stop.EndEarly("no better");
  CHECK(stop.requested());
  CHECK(TakenEvents(commands) == Names{"early_stop"});
  CHECK(stop.Outcome(false, false) == v1::JOB_FINISHED);
  CHECK(stop.Ending() == "the job is over: no better");
  v1::CoordinatorRecord record;
  stop.Fill(v1::JOB_STARTING, record);
  CHECK(record.message().empty());
  CHECK(record.stop_reason().empty());
  stop.Fill(v1::JOB_FINISHED, record);
  CHECK(record.message() == "no better");
  stop.Decide(v1::JOB_FINISHED);
  CHECK(stop.Finished().state == "finished");
  CHECK(stop.Finished().message == "no better");
  stop.Fail("why");
  CHECK(stop.Outcome(false, false) == v1::JOB_FAILED);
}

TEST_CASE("stop: a record says what belongs to its outcome") {
  Commands commands;
  StopProtocol stop(commands);
  stop.Request("a person");
  v1::CoordinatorRecord record;
  stop.Fill(v1::JOB_STARTING, record);
  CHECK(record.message().empty());
  CHECK(record.stop_reason() == "a person");
  stop.Fill(v1::JOB_STOPPED, record);
  CHECK(record.message() == "a person");
  stop.Decide(v1::JOB_STOPPED);
  CHECK(stop.Finished().state == "stopped");
  stop.MarkPermanent();
  stop.Fail("why");
  stop.Fill(v1::JOB_FAILED, record);
  CHECK(record.message() == "why");
  CHECK(record.permanent());
  stop.Fill(v1::JOB_STARTING, record);
  CHECK_FALSE(record.permanent());
  stop.Decide(v1::JOB_FAILED);
  CHECK(stop.Finished().message == "why");
}

}  // namespace
}  // namespace leeway::stop_protocol
