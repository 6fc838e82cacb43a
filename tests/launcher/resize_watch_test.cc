#include "launcher/supervision/resize_watch.h"

#include "tests/catch.h"

namespace leeway::resize_watch {
namespace {

// The status of a change from 2 to 3 servers when `here` servers are there.
v1::JobStatus Status(v1::JobState state, uint32_t wanted, uint32_t here, uint32_t to_move = 0) {
  v1::JobStatus status;
  status.set_state(state);
  status.set_message("its message");
  status.set_servers_wanted(wanted);
  status.set_shards_to_move(to_move);
  for (uint32_t i = 0; i < wanted; ++i) {
    status.add_servers()->set_index(i);
    status.mutable_servers(i)->set_state(i < here ? "ready" : "waiting");
  }
  return status;
}

const absl::Status kSilence = absl::UnavailableError("connection refused");

}  // namespace

TEST_CASE("Another number of servers is reached when all are here and nothing is to move") {
  ResizeWatch watch(2, 3);
  CHECK(watch.OnStatus(Status(v1::JOB_RUNNING, 3, 2, 4))->pending ==
        "shards to move: 4; waiting for server 2");
  CHECK(watch.OnStatus(Status(v1::JOB_RUNNING, 3, 3, 1))->pending == "shards to move: 1");
  CHECK(watch.OnStatus(Status(v1::JOB_RUNNING, 3, 3))->done);
}

TEST_CASE("Only a job that is over, or is being stopped, is not waited for") {
  for (int state = v1::JobState_MIN; state <= v1::JobState_MAX; ++state) {
    CAPTURE(v1::JobState_Name(state));
    ResizeWatch watch(2, 3);
    const auto step = watch.OnStatus(Status(static_cast<v1::JobState>(state), 3, 2));
    const bool goes_on = state == v1::JOB_RUNNING || state == v1::JOB_STARTING;
    CHECK(step.ok() == goes_on);
    if (step.ok()) {
      CHECK_FALSE(step->done);
      CHECK_FALSE(step->pending.empty());
    } else {
      CHECK(absl::IsFailedPrecondition(step.status()));
      CHECK_THAT(std::string(step.status().message()), Catch::Contains("its message"));
    }
  }
}

TEST_CASE("A coordinator that is away for a while is waited for, and that is told") {
  ResizeWatch watch(2, 3);
  CHECK_THAT(watch.OnSilence(kSilence).pending, Catch::Contains("connection refused"));
  CHECK_THAT(watch.OnStatus(Status(v1::JOB_STARTING, 3, 1))->pending,
             Catch::Contains("started again"));
  CHECK(watch.OnStatus(Status(v1::JOB_RUNNING, 3, 3))->done);
}

TEST_CASE("A coordinator that died before the wish was on record is asked once more") {
  for (const bool silent : {true, false}) {
    ResizeWatch watch(2, 3);
    if (silent) {
      watch.OnSilence(kSilence);
    } else {
      REQUIRE(watch.OnStatus(Status(v1::JOB_STARTING, 2, 1)).ok());
    }
    CHECK(watch.OnStatus(Status(v1::JOB_RUNNING, 2, 2))->ask_again);
    CHECK(watch.OnStatus(Status(v1::JOB_RUNNING, 3, 3))->done);
    // Another process has asked for something else.
    CHECK(absl::IsAborted(watch.OnStatus(Status(v1::JOB_RUNNING, 2, 2)).status()));
  }
}

TEST_CASE("Whoever asks for another number meanwhile has the last word") {
  ResizeWatch watch(2, 3);
  watch.OnSilence(kSilence);
  CHECK(absl::IsAborted(watch.OnStatus(Status(v1::JOB_RUNNING, 4, 4)).status()));
}

}  // namespace leeway::resize_watch
