// A whole worker with a fake coordinator and fake servers.
#include "worker/worker.h"

#include <atomic>
#include <future>
#include <limits>
#include <map>
#include <string>

#include "common/interval_set.h"
#include "common/mutex.h"
#include "tests/catch.h"
#include "tests/client/fake_servers.h"
#include "tests/worker/trainer/worker_rig.h"

namespace leeway::worker {
namespace {

using testing::FakeRequest;
using testing::kTotal;
using testing::Rig;

TEST_CASE("A worker initialises, trains every clock, evaluates and leaves") {
  Rig rig({"evaluation.every.clocks=4"});
  const WorkerEnd end = rig.Run();
  REQUIRE(end.status.ok());
  CHECK(end.exit == WorkerExit::kDone);
  CHECK(rig.Sent("Initialize") == 3);
  CHECK(rig.Sent("PushPull") == 6 * 3);
  REQUIRE(rig.coordinator.leaves().size() == 1);
  CHECK(rig.coordinator.leaves()[0].reason() == v1::LEAVE_FINISHED);
  CHECK(rig.coordinator.leaves()[0].clock() == 6);

  uint64_t steps = 0, examples = 0;
  std::vector<v1::EvaluationMetrics> evaluations;
  for (const auto& beat : rig.coordinator.heartbeats()) {
    for (const auto& metrics : beat.steps()) {
      steps += metrics.steps();
      examples += metrics.examples();
      CHECK(metrics.train_loss() > 0);
      CHECK(metrics.forward_seconds() > 0);
      CHECK(metrics.backward_seconds() > 0);
      CHECK(metrics.compute_seconds() ==
            Approx(metrics.forward_seconds() + metrics.backward_seconds()));
      CHECK(metrics.exchange_seconds() > 0);
      CHECK(metrics.wait_seconds() <= metrics.exchange_seconds());
    }
    evaluations.insert(evaluations.end(), beat.evaluations().begin(), beat.evaluations().end());
  }
  CHECK(steps == 6);
  CHECK(examples == 48);
  REQUIRE(evaluations.size() == 2);
  CHECK(evaluations[0].clock() == 4);
  CHECK(evaluations[0].epoch() == Approx(0.4));
  CHECK(evaluations[1].clock() == 6);
  CHECK(evaluations[1].examples() == 50);
  CHECK(evaluations[1].test_loss() < evaluations[0].test_loss());
  CHECK(evaluations[1].has_test_accuracy());
  CHECK(rig.coordinator.registrations().back().steps_per_epoch() == 10);
}

TEST_CASE(
    "A worker of a run that was resumed with other numbers begins with the step that it is told") {
  Rig plain, resumed;
  v1::JobLength& length = *resumed.coordinator.registration.mutable_length();
  length = ComputeLength(resumed.coordinator.registration.job(), 10, {.clock = 0, .step = 3});
  REQUIRE(plain.Run().exit == WorkerExit::kDone);
  REQUIRE(resumed.Run().exit == WorkerExit::kDone);
  CHECK(resumed.Sent("PushPull") == 6 * 3);
  double epoch = 0;
  for (const auto& beat : resumed.coordinator.heartbeats()) {
    for (const auto& metrics : beat.steps()) epoch = std::max(epoch, metrics.epoch());
  }
  CHECK(epoch == Approx(0.9));
  CHECK(resumed.model->weights() != plain.model->weights());
}

TEST_CASE("In async every exchange has a batch, and who has no data makes none") {
  // The data has three batches: ranks 0 to 2 have one each.
  for (const auto& [rank, exchanges] : {std::pair(0u, 4), {1u, 4}, {3u, 0}}) {
    Rig rig({"consistency.mode=async", "workers.count=4", "data.batch_size=30", "stop.clocks=1"});
    rig.coordinator.registration.set_rank(rank);
    rig.model->needs_initialize = rank == 0;
    CHECK(rig.Run().exit == WorkerExit::kDone);
    // A message for each of three blocks.
    CHECK(rig.Sent("PushPull") == 3 * exchanges);
    for (const auto& beat : rig.coordinator.heartbeats()) {
      for (const auto& metrics : beat.steps()) CHECK(metrics.examples() > 0);
    }
    REQUIRE(rig.coordinator.leaves().size() == 1);
    CHECK(rig.coordinator.leaves()[0].reason() == v1::LEAVE_FINISHED);
  }
}

TEST_CASE("A restarted worker goes on where the servers say") {
  Rig rig;
  rig.model->needs_initialize = false;
  rig.model->attach_clock = 4;
  CHECK(rig.Run().exit == WorkerExit::kDone);
  CHECK(rig.Sent("Initialize") == 0);
  CHECK(rig.Sent("PushPull") == 2 * 3);
  for (const FakeRequest& request : rig.model->requests()) {
    if (request.method == "PushPull") CHECK(request.header.clock() >= 4);
  }
}

TEST_CASE("Where the codec is to be chosen a worker says how fast its way to the servers is") {
  Rig rig;
  const bool asked = GENERATE(true, false);
  if (asked) {
    rig.coordinator.offer = rig.coordinator.registration.job();
    rig.coordinator.offer->mutable_compression()->mutable_contributions()->mutable_auto_();
  }
  // A worker that cannot measure its link still trains.
  const bool answered = GENERATE(true, false);
  rig.coordinator.refuse = [&](const std::string& method) {
    if (method != "ProbeLink" || answered) return absl::OkStatus();
    // After UNAVAILABLE the worker would ask again for 20 s.
    return absl::InternalError("no way");
  };
  CHECK(rig.Run().exit == WorkerExit::kDone);
  const auto registration = rig.coordinator.registrations().back();
  CHECK(registration.has_link() == (asked && answered));
  if (registration.has_link()) CHECK(registration.link() > 0);
  CHECK((rig.coordinator.calls("ProbeLink") > 0) == asked);
}

TEST_CASE("Only rank 0 initialises and evaluates") {
  Rig rig({"workers.count=2"});
  rig.coordinator.registration.set_rank(1);
  CHECK(rig.Run().exit == WorkerExit::kDone);
  CHECK(rig.Sent("Initialize") == 0);
  for (const auto& beat : rig.coordinator.heartbeats()) CHECK(beat.evaluations().empty());
}

TEST_CASE("A requested stop is asked for between two exchanges and kept to") {
  Rig rig;
  rig.coordinator.stop_at = 3;
  rig.coordinator.on_heartbeat = [&](const v1::HeartbeatRequest&, v1::HeartbeatReply& reply) {
    reply.set_stop_requested(true);
  };
  // The first exchange waits until the worker must have heard.
  rig.model->script = [&](const FakeRequest& request) {
    if (request.method == "PushPull") rig.coordinator.WaitForHeartbeats(2);
    return absl::OkStatus();
  };
  CHECK(rig.Run().exit == WorkerExit::kStopped);
  REQUIRE(rig.coordinator.stops().size() == 1);
  REQUIRE(rig.coordinator.leaves().size() == 1);
  CHECK(rig.coordinator.leaves()[0].reason() == v1::LEAVE_STOPPED);
  CHECK(rig.coordinator.leaves()[0].clock() == 3);
}

TEST_CASE("An exchange in flight beyond the end is broken off") {
  Rig rig(
      {"exchange={type: delta, local_steps: 1, optimizer: {type: sgd, learning_rate: 0.1, "
       "momentum: 0.9}}"});
  rig.coordinator.registration.set_save_state(true);
  std::atomic<bool> in_flight{false};
  std::promise<void> over;
  auto gate = over.get_future().share();
  rig.model->script = [&](const FakeRequest& request) {
    if (request.method != "PushPull" || request.header.clock() < 2) return absl::OkStatus();
    in_flight = true;
    gate.wait();
    return absl::UnavailableError("waiting for worker 1");
  };
  std::atomic<bool> told{false};
  rig.coordinator.on_heartbeat = [&](const v1::HeartbeatRequest&, v1::HeartbeatReply& reply) {
    if (!in_flight) return;
    reply.set_stop_requested(true);
    reply.set_stop_at(2);
    // The last heartbeat comes when the worker has stopped.
    if (told.exchange(true)) over.set_value();
  };
  const WorkerEnd end = rig.Run();
  CHECK(end.exit == WorkerExit::kStopped);
  REQUIRE(rig.coordinator.leaves().size() == 1);
  CHECK(rig.coordinator.leaves()[0].reason() == v1::LEAVE_STOPPED);
  CHECK(rig.coordinator.leaves()[0].clock() == 2);
  CHECK(rig.coordinator.saved().count(2) == 1);
}

// From clock `from` on, the servers hold contributions until the worker has heard that all workers
// stop at clock 2.
struct Stopping {
  Stopping(Rig& rig, uint64_t from, absl::Status answer) {
    rig.model->script = [this, from, answer](const FakeRequest& request) {
      if (request.method != "PushPull" || request.header.clock() < from) return absl::OkStatus();
      in_flight = true;
      released.wait();
      return answer;
    };
    rig.coordinator.stop_at = 2;
    rig.coordinator.on_heartbeat = [this](const v1::HeartbeatRequest&, v1::HeartbeatReply& reply) {
      if (!in_flight) return;
      reply.set_stop_requested(true);
      reply.set_stop_at(2);
      // The second reply comes when the worker has heard the first one.
      if (++told == 2) over.set_value();
    };
  }

  std::atomic<bool> in_flight{false};
  std::atomic<int> told{0};
  std::promise<void> over;
  std::shared_future<void> released = over.get_future().share();
};

TEST_CASE("A worker that computes beyond the end first ends the exchange that others need") {
  Rig rig;
  // The steps of clock 2 have begun, or will soon; the other workers' steps wait for this exchange.
  Stopping stopping(rig, 1, absl::OkStatus());
  const WorkerEnd end = rig.Run();
  CHECK(end.exit == WorkerExit::kStopped);
  REQUIRE(rig.coordinator.leaves().size() == 1);
  CHECK(rig.coordinator.leaves()[0].reason() == v1::LEAVE_STOPPED);
  CHECK(rig.coordinator.leaves()[0].clock() == 2);
  CHECK(rig.Sent("PushPull") == 2 * 3);
  for (const FakeRequest& request : rig.model->requests()) CHECK(request.header.clock() < 2);
}

TEST_CASE("A gradient on its way beyond the end is broken off, and its clock not counted") {
  Rig rig;
  Stopping stopping(rig, 2, absl::UnavailableError("waiting for worker 1"));
  const WorkerEnd end = rig.Run();
  CHECK(end.exit == WorkerExit::kStopped);
  REQUIRE(rig.coordinator.leaves().size() == 1);
  CHECK(rig.coordinator.leaves()[0].reason() == v1::LEAVE_STOPPED);
  CHECK(rig.coordinator.leaves()[0].clock() == 2);
  uint64_t steps = 0;
  for (const auto& beat : rig.coordinator.heartbeats()) {
    for (const auto& metrics : beat.steps()) steps += metrics.steps();
  }
  CHECK(steps == 2);
}

TEST_CASE("Training that diverges fails the job, saying who and when") {
  Rig rig;
  rig.model->needs_initialize = false;
  rig.model->set_weights(std::vector<float>(kTotal, std::numeric_limits<float>::infinity()));
  const WorkerEnd end = rig.Run();
  CHECK(end.exit == WorkerExit::kPermanent);
  REQUIRE(rig.coordinator.leaves().size() == 1);
  CHECK(rig.coordinator.leaves()[0].reason() == v1::LEAVE_FAILED);
  CHECK_THAT(rig.coordinator.leaves()[0].message(), Catch::Contains("worker 0, clock 0"));
  CHECK(rig.Sent("PushPull") == 0);
}

TEST_CASE("A worker that a newer life has replaced steps back without a word") {
  Rig rig;
  rig.model->script = [](const FakeRequest& request) {
    return request.method == "PushPull" ? absl::AbortedError("a newer life of worker 0 exists")
                                        : absl::OkStatus();
  };
  CHECK(rig.Run().exit == WorkerExit::kReplaced);
  CHECK(rig.coordinator.leaves().empty());

  Rig beaten;
  beaten.coordinator.refuse = [](const std::string& method) {
    return method == "Heartbeat" ? absl::AbortedError("a newer life exists") : absl::OkStatus();
  };
  beaten.model->script = [&](const FakeRequest& request) {
    // Keeps the worker busy until its heartbeat is refused.
    if (request.method == "PushPull") return absl::UnavailableError("waiting for worker 1");
    return absl::OkStatus();
  };
  beaten.coordinator.registration.mutable_job()->mutable_limits()->set_exchange_seconds(1e9);
  CHECK(beaten.Run().exit == WorkerExit::kReplaced);
  CHECK(beaten.coordinator.leaves().empty());
}

TEST_CASE(
    "A worker that is refused while it reads the last weights is not taken for a failed one") {
  Rig rig;
  std::atomic<bool> reads{false};
  rig.coordinator.refuse = [&](const std::string& method) {
    return method == "Heartbeat" && reads ? absl::AbortedError("a newer life exists")
                                          : absl::OkStatus();
  };
  rig.model->script = [&](const FakeRequest& request) {
    if (request.reads != ReadKind::kLatest) return absl::OkStatus();
    reads = true;
    return absl::UnavailableError("server 1 is away");
  };
  rig.coordinator.registration.mutable_job()->mutable_limits()->set_exchange_seconds(1e6);
  CHECK(rig.Run().exit == WorkerExit::kReplaced);
  CHECK(rig.coordinator.leaves().empty());
}

// The others complete clock 1 without this worker, which continues at clock 3.
void Overtake(Rig& rig, uint64_t counted) {
  rig.model->script = [&rig, counted](const FakeRequest& request) {
    if (request.method != "PushPull" || request.header.clock() != 1) return absl::OkStatus();
    rig.model->counted = counted;
    rig.model->attach_clock = 3;
    return absl::AlreadyExistsError("clock 1 is complete");
  };
}

TEST_CASE("A worker that was overtaken goes on, and what it computed counts or is dropped") {
  const uint64_t counted = GENERATE(1, 2);
  Rig rig;
  Overtake(rig, counted);
  REQUIRE(rig.Run().exit == WorkerExit::kDone);
  CHECK(rig.Sent("Attach") == 2 * 2);
  CHECK(rig.coordinator.registrations().size() == 2);
  REQUIRE(rig.coordinator.leaves().size() == 1);
  CHECK(rig.coordinator.leaves()[0].clock() == 6);
  uint64_t steps = 0, dropped = 0;
  for (const auto& beat : rig.coordinator.heartbeats()) {
    for (const auto& metrics : beat.steps()) {
      steps += metrics.steps();
      dropped += metrics.dropped_steps();
    }
  }
  // Clocks 0, 1, 3, 4 and 5.
  CHECK(steps == (counted == 2 ? 5 : 4));
  CHECK(dropped == (counted == 2 ? 0 : 1));
}

TEST_CASE("A worker that is overtaken while it asks where to stop asks again") {
  Rig rig;
  Overtake(rig, 1);
  const auto overtake = rig.model->script;
  std::atomic<bool> begun{false};
  rig.coordinator.stop_at = 5;
  rig.coordinator.on_heartbeat = [&](const v1::HeartbeatRequest&, v1::HeartbeatReply& reply) {
    reply.set_stop_requested(begun);
  };
  rig.model->script = [&](const FakeRequest& request) {
    // The exchange of clock 0 ends when the worker must have heard.
    if (request.method == "PushPull" && !begun.exchange(true)) {
      rig.coordinator.WaitForHeartbeats(rig.coordinator.heartbeats().size() + 2);
    }
    return overtake(request);
  };
  CHECK(rig.Run().exit == WorkerExit::kStopped);
  CHECK(rig.coordinator.stops().size() == 1);
  REQUIRE(rig.coordinator.leaves().size() == 1);
  CHECK(rig.coordinator.leaves()[0].reason() == v1::LEAVE_STOPPED);
  CHECK(rig.coordinator.leaves()[0].clock() == 5);
}

TEST_CASE("A worker that was somewhere else than it thought may be restarted") {
  Rig rig;
  rig.model->script = [](const FakeRequest& request) {
    return request.method == "PushPull" ? absl::FailedPreconditionError("clock skipped")
                                        : absl::OkStatus();
  };
  CHECK(rig.Run().exit == WorkerExit::kRestart);
  CHECK(rig.coordinator.leaves().empty());
}

TEST_CASE("Emulated slowness is slept, and changes no result") {
  Rig plain, slow({"workers.emulate.step_milliseconds=1000"});
  REQUIRE(plain.Run().exit == WorkerExit::kDone);
  REQUIRE(slow.Run().exit == WorkerExit::kDone);
  CHECK(slow.slept > std::chrono::seconds(5));
  CHECK(slow.slept <= std::chrono::seconds(6));
  CHECK(plain.slept == Duration::zero());
  CHECK(slow.model->weights() == plain.model->weights());
}

TEST_CASE("Wrong data and wrong ranks end before the registration") {
  Rig rig({"data.train={type: csv, files: [absent.csv]}", "data.test={type: csv, files: [a.csv]}"});
  WorkerEnd end = rig.Run();
  CHECK(end.exit == WorkerExit::kPermanent);
  CHECK_THAT(std::string(end.status.message()), Catch::Contains("absent.csv"));

  // The worker has the job from elsewhere, and reads only its own data folder.
  Rig elsewhere({"data.test={type: csv, files: [/etc/a.csv]}"});
  end = elsewhere.Run();
  CHECK(end.exit == WorkerExit::kPermanent);
  CHECK_THAT(std::string(end.status.message()), Catch::Contains("start the worker with"));

  Rig two;
  two.coordinator.registration.set_rank(2);
  end = two.Run();
  CHECK(end.exit == WorkerExit::kUsage);
  CHECK_THAT(std::string(end.status.message()), Catch::Contains("--rank 2"));
  CHECK(two.coordinator.calls("RegisterWorker") == 1);
}

TEST_CASE(
    "That nobody answers, or that the others do not come, may pass: the worker may be restarted") {
  WorkerOptions options;
  // No process listens there.
  options.coordinator = "127.0.0.1:1";
  options.start_within = std::chrono::milliseconds(200);
  WorkerEnd end = RunWorker(options);
  CHECK(end.exit == WorkerExit::kRestart);
  CHECK_THAT(std::string(end.status.message()), Catch::Contains("127.0.0.1:1"));

  Rig rig({"limits.start_seconds=0.2"});
  rig.coordinator.refuse = [](const std::string& method) {
    return method == "RegisterWorker" ? absl::UnavailableError("waiting for worker 1")
                                      : absl::OkStatus();
  };
  rig.coordinator.registration.mutable_job()->mutable_limits()->set_start_seconds(0.2);
  rig.start_within = std::chrono::milliseconds(200);
  end = rig.Run();
  CHECK(end.exit == WorkerExit::kRestart);
  CHECK_THAT(std::string(end.status.message()), Catch::Contains("waiting for worker 1"));
}

TEST_CASE("What a worker that is overtaken has trained on is reported before it begins anew") {
  Mutex mutex;
  IntervalSet held;
  uint64_t next = 0;
  // By batch: how many registrations there had been when it was reported.
  std::map<uint64_t, size_t> reported;
  Rig rig({"exchange={type: delta, local_steps: 1, optimizer: {type: sgd, learning_rate: 0.1}}",
           "data.assignment=leased", "workers.on_worker_loss=continue"});
  Overtake(rig, 1);
  rig.coordinator.on_lease = [&](const v1::LeaseDataRequest& request, v1::LeaseDataReply& reply) {
    const size_t lives = rig.coordinator.registrations().size();
    MutexLock lock(mutex);
    for (const v1::DoneRange& range : request.done()) {
      held.Remove({range.first(), range.first() + range.count()});
      for (uint64_t i = 0; i < range.count(); ++i) reported.emplace(range.first() + i, lives);
    }
    while (held.size() < request.want()) held.Add({next, next + 1}), ++next;
    for (const Interval& run : held.runs()) {
      v1::DataRange* range = reply.add_held();
      range->set_first(run.first);
      range->set_count(run.size());
    }
  };
  REQUIRE(rig.Run().exit == WorkerExit::kDone);
  // One registration for the job, and one for each of the two trainers.
  CHECK(rig.coordinator.registrations().size() == 3);
  CHECK(reported.at(0) == 2);
  CHECK(reported.at(1) == 3);
}

}  // namespace
}  // namespace leeway::worker
