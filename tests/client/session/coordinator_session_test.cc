#include "client/session/coordinator_session.h"

#include <atomic>
#include <future>

#include "common/protocol.h"
#include "tests/catch.h"
#include "tests/client/fake_coordinator.h"

namespace leeway::coordinator_session {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::FakeCoordinator;

CoordinatorSession::Options Options(const FakeCoordinator& coordinator) {
  return {.address = coordinator.address(),
          .host = "here",
          .pid = 11,
          .nonce = 12,
          .sleep = [](Duration) {}};
}

std::unique_ptr<CoordinatorSession> Join(FakeCoordinator& coordinator) {
  coordinator.registration.set_job_id(7);
  coordinator.registration.set_rank(2);
  coordinator.registration.set_incarnation(5);
  auto session = std::make_unique<CoordinatorSession>(coordinator.channel(), Options(coordinator));
  REQUIRE(session->Register({}, seconds(20)).ok());
  return session;
}

TEST_CASE("Registration is repeated as the same life while somebody is missing") {
  FakeCoordinator coordinator;
  std::atomic<int> asked{0};
  coordinator.refuse = [&](const std::string&) {
    return ++asked < 4 ? absl::UnavailableError("waiting for worker 1") : absl::OkStatus();
  };
  CoordinatorSession session(coordinator.channel(), Options(coordinator));
  v1::RegisterWorkerRequest request;
  request.set_rank(2);
  REQUIRE(session.Register(request, seconds(20)).ok());
  CHECK(coordinator.calls("RegisterWorker") == 4);
  const auto heard = coordinator.registrations();
  REQUIRE(heard.size() == 1);
  CHECK(heard[0].rank() == 2);
  CHECK(heard[0].host() == "here");
  CHECK(heard[0].pid() == 11);
  CHECK(heard[0].nonce() == 12);
  CHECK(heard[0].build().protocol() == kProtocol);
}

TEST_CASE("A registration that is refused says by whom and why") {
  FakeCoordinator coordinator;
  coordinator.refuse = [](const std::string&) {
    return absl::FailedPreconditionError("speaks protocol 2");
  };
  CoordinatorSession session(coordinator.channel(), Options(coordinator));
  const auto status = session.FetchJob({}, seconds(20)).status();
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(status.message()),
             Catch::Contains(coordinator.address()) && Catch::Contains("speaks protocol 2"));
}

TEST_CASE("Waiting for the start ends with who was missing") {
  FakeCoordinator coordinator;
  coordinator.refuse = [](const std::string&) {
    return absl::UnavailableError("waiting for worker 1");
  };
  CoordinatorSession session(coordinator.channel(), Options(coordinator));
  const auto status = session.Register({}, milliseconds(500)).status();
  CHECK(absl::IsUnavailable(status));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("limits.start_seconds") && Catch::Contains("waiting for worker 1"));
}

TEST_CASE("Heartbeats carry clock, metrics and what is waited for, and bring the stop") {
  FakeCoordinator coordinator;
  coordinator.on_heartbeat = [](const v1::HeartbeatRequest& request, v1::HeartbeatReply& reply) {
    if (request.steps().empty()) return;
    reply.set_stop_requested(true);
    reply.set_stop_at(9);
  };
  auto session = Join(coordinator);
  v1::StepMetrics metrics;
  metrics.set_clock(3);
  session->SetClock(3);
  session->Report(metrics);
  std::promise<uint64_t> stop;
  session->StartHeartbeats(milliseconds(1), {.waiting = [] { return "waiting for worker 1"; },
                                             .on_stop_at = [&](uint64_t c) { stop.set_value(c); },
                                             .on_refused = nullptr});
  CHECK(stop.get_future().get() == 9);
  CHECK(session->stop_requested());
  // Later heartbeats are idle, and do not repeat the stop.
  coordinator.WaitForHeartbeats(4);
  const auto heard = coordinator.heartbeats();
  CHECK(heard[0].rank() == 2);
  CHECK(heard[0].incarnation() == 5);
  CHECK(heard[0].clock() == 3);
  CHECK(heard[0].waiting() == "waiting for worker 1");
  CHECK(heard[0].steps_size() == 1);
  CHECK(heard[1].steps_size() == 0);
}

TEST_CASE("Metrics of a heartbeat that failed go out with the next one") {
  FakeCoordinator coordinator;
  std::atomic<int> beats{0};
  coordinator.refuse = [&](const std::string& method) {
    return method == "Heartbeat" && ++beats == 1 ? absl::UnavailableError("no") : absl::OkStatus();
  };
  auto session = Join(coordinator);
  session->Report(v1::StepMetrics());
  session->Report(v1::EvaluationMetrics());
  session->StartHeartbeats(milliseconds(1), {});
  coordinator.WaitForHeartbeats(1);
  CHECK(coordinator.heartbeats()[0].steps_size() == 1);
  CHECK(coordinator.heartbeats()[0].evaluations_size() == 1);
}

TEST_CASE("Heartbeats say which addresses of workers are known, and bring newer ones once") {
  FakeCoordinator coordinator;
  coordinator.registration.mutable_peers()->set_epoch(7);
  coordinator.on_heartbeat = [](const v1::HeartbeatRequest& request, v1::HeartbeatReply& reply) {
    // The next coordinator's epochs may be lower.
    if (request.peers_epoch() == 3) return;
    reply.mutable_peers()->set_epoch(3);
    reply.mutable_peers()->add_addresses("host:1");
  };
  auto session = Join(coordinator);
  std::promise<v1::Peers> peers;
  session->StartHeartbeats(milliseconds(1),
                           {.on_peers = [&](const v1::Peers& heard) { peers.set_value(heard); }});
  CHECK(peers.get_future().get().addresses(0) == "host:1");
  coordinator.WaitForHeartbeats(3);
  session->EndHeartbeats();
  CHECK(coordinator.heartbeats()[0].peers_epoch() == 7);
  CHECK(coordinator.heartbeats()[1].peers_epoch() == 3);
}

TEST_CASE("Who looks for its servers need not wait for the next heartbeat") {
  FakeCoordinator coordinator;
  auto session = Join(coordinator);
  session->StartHeartbeats(std::chrono::hours(1), {});
  coordinator.WaitForHeartbeats(1);
  session->BeatSoon();
  session->BeatSoon();
  coordinator.WaitForHeartbeats(2);
  session->BeatSoon();
  coordinator.WaitForHeartbeats(3);
  session->EndHeartbeats();
  CHECK(coordinator.calls("Heartbeat") == 3);
}

// Whether a worker that waits as long as `waited` hears the others, in a job whose exchanges may
// take 600 s.
bool HearsOthers(const char* worker, const char* server, v1::WorkerLoss on_loss, seconds waited) {
  FakeCoordinator coordinator;
  coordinator.status.add_workers()->set_state(worker);
  coordinator.status.add_servers()->set_state(server);
  auto& job = *coordinator.registration.mutable_job();
  job.mutable_consistency()->set_mode(v1::CONSISTENCY_MODE_SYNC);
  job.mutable_workers()->set_on_worker_loss(on_loss);
  job.mutable_limits()->set_exchange_seconds(600);
  std::atomic<int64_t> now{1000};
  auto options = Options(coordinator);
  options.now = [&now] { return Time(seconds(now)); };
  CoordinatorSession session(coordinator.channel(), options);
  REQUIRE(session.Register({}, seconds(20)).ok());
  session.StartHeartbeats(milliseconds(1), {.waiting = [] { return "waiting for worker 1"; }});
  coordinator.WaitForHeartbeats(2);
  CHECK_FALSE(session.others_are_heard());
  now += waited.count();
  coordinator.WaitForHeartbeats(coordinator.heartbeats().size() + 2);
  session.EndHeartbeats();
  CHECK(coordinator.calls("GetJobStatus") == (waited < seconds(150) ? 0 : 1));
  return session.others_are_heard();
}

TEST_CASE("Who waits for long asks whether those that it waits for are heard") {
  CHECK_FALSE(HearsOthers("running", "ready", v1::WORKER_LOSS_WAIT, seconds(149)));
  CHECK(HearsOthers("running", "ready", v1::WORKER_LOSS_WAIT, seconds(150)));
  CHECK_FALSE(HearsOthers("lost", "ready", v1::WORKER_LOSS_WAIT, seconds(150)));
  CHECK_FALSE(HearsOthers("waiting", "ready", v1::WORKER_LOSS_WAIT, seconds(150)));
  CHECK(HearsOthers("lost", "ready", v1::WORKER_LOSS_CONTINUE, seconds(150)));
  CHECK_FALSE(HearsOthers("running", "lost", v1::WORKER_LOSS_CONTINUE, seconds(150)));
}

TEST_CASE("A worker that a newer life has replaced is told so, once") {
  FakeCoordinator coordinator;
  coordinator.refuse = [](const std::string& method) {
    return method == "Heartbeat" ? absl::AbortedError("a newer life exists") : absl::OkStatus();
  };
  auto session = Join(coordinator);
  std::promise<absl::Status> refused;
  session->StartHeartbeats(milliseconds(1),
                           {.waiting = nullptr,
                            .on_stop_at = nullptr,
                            .on_refused = [&](const absl::Status& s) { refused.set_value(s); }});
  CHECK(refused.get_future().get().code() == absl::StatusCode::kAborted);
  session->EndHeartbeats();
  CHECK(coordinator.calls("Heartbeat") == 1);
}

TEST_CASE("Who has finished asks until the job is sealed, who has failed goes at once") {
  FakeCoordinator coordinator;
  coordinator.unsealed_leaves = 3;
  auto session = Join(coordinator);
  SECTION("finished") {
    REQUIRE(session->Leave(v1::LEAVE_FINISHED, 12, "").ok());
    REQUIRE(coordinator.leaves().size() == 4);
    CHECK(coordinator.leaves()[3].waits());
  }
  SECTION("failed") {
    REQUIRE(session->Leave(v1::LEAVE_FAILED, 12, "diverged").ok());
    REQUIRE(coordinator.leaves().size() == 1);
    CHECK_FALSE(coordinator.leaves()[0].waits());
  }
}

// Sleeping is what passes the time.
struct SleptTime {
  CoordinatorSession::Options On(const FakeCoordinator& coordinator) {
    CoordinatorSession::Options options = Options(coordinator);
    options.sleep = [this](Duration pause) { slept = slept.load() + pause; };
    options.now = [this] { return Time{} + slept.load(); };
    return options;
  }
  std::atomic<Duration> slept{};
};

TEST_CASE("A coordinator that has said that the job may go back is waited for") {
  FakeCoordinator coordinator;
  coordinator.unsealed_leaves = 1;
  SleptTime time;
  std::atomic<Duration> back{seconds(15)};
  // The coordinator is away after its first answer.
  coordinator.refuse = [&](const std::string& method) {
    const bool away = !coordinator.leaves().empty() && time.slept.load() < back.load();
    return method == "Leave" && away ? absl::UnavailableError("away") : absl::OkStatus();
  };
  CoordinatorSession session(coordinator.channel(), time.On(coordinator));
  REQUIRE(session.Register({}, seconds(60)).ok());
  const auto reason = GENERATE(v1::LEAVE_FINISHED, v1::LEAVE_STOPPED);
  SECTION("back in time") {
    CHECK(session.Leave(reason, 12, "").ok());
    CHECK(coordinator.leaves().size() == 2);
    CHECK(time.slept.load() >= back.load());
  }
  SECTION("never") {
    back = Duration(std::chrono::hours(1));
    CHECK(session.Leave(reason, 12, "").code() == absl::StatusCode::kUnavailable);
    CHECK(time.slept.load() >= seconds(60));
  }
}

TEST_CASE("Without any answer a finished worker is done, and a stopped one lives on") {
  FakeCoordinator coordinator;
  SleptTime time;
  coordinator.refuse = [](const std::string& method) {
    return method == "Leave" ? absl::UnavailableError("away") : absl::OkStatus();
  };
  CoordinatorSession session(coordinator.channel(), time.On(coordinator));
  REQUIRE(session.Register({}, seconds(60)).ok());
  CHECK(session.Leave(v1::LEAVE_FINISHED, 12, "").ok());
  CHECK(session.Leave(v1::LEAVE_STOPPED, 12, "").code() == absl::StatusCode::kUnavailable);
  CHECK(time.slept.load() < seconds(40));
}

TEST_CASE("Leaving hands in the last metrics first") {
  FakeCoordinator coordinator;
  auto session = Join(coordinator);
  v1::StepMetrics metrics;
  metrics.set_clock(12);
  session->Report(metrics);
  REQUIRE(session->Leave(v1::LEAVE_FAILED, 12, "diverged").ok());
  REQUIRE(coordinator.heartbeats().size() == 1);
  CHECK(coordinator.heartbeats()[0].steps(0).clock() == 12);
  REQUIRE(coordinator.leaves().size() == 1);
  CHECK(coordinator.leaves()[0].reason() == v1::LEAVE_FAILED);
  CHECK(coordinator.leaves()[0].clock() == 12);
  CHECK(coordinator.leaves()[0].message() == "diverged");
}

TEST_CASE("A state travels in chunks and comes back whole") {
  FakeCoordinator coordinator;
  auto session = Join(coordinator);
  std::string state(5 * (1 << 19) + 3, 'x');
  state[1 << 20] = 'y';
  REQUIRE(session->SaveWorkerState(40, state).ok());
  CHECK(coordinator.saved() == std::map<uint64_t, std::string>{{40, state}});
  CHECK(coordinator.chunks() == 3);
  REQUIRE(session->SaveWorkerState(41, "").ok());
  CHECK(coordinator.saved()[41].empty());

  CHECK(session->LoadWorkerState().status().code() == absl::StatusCode::kNotFound);
  coordinator.state.emplace();
  coordinator.state->set_clock(40);
  coordinator.state->set_data(state.substr(0, 1000));
  const auto loaded = session->LoadWorkerState();
  REQUIRE(loaded.ok());
  CHECK(loaded->clock == 40);
  CHECK(loaded->bytes == state.substr(0, 1000));
  // Each may take as long as an exchange, 600 seconds, and not only as long as a question.
  CHECK(coordinator.limit("SaveWorkerState") > std::chrono::seconds(500));
  CHECK(coordinator.limit("LoadWorkerState") > std::chrono::seconds(500));
}

TEST_CASE("A question for batches is broken off, under way or between two attempts") {
  const bool answers = GENERATE(true, false);
  std::promise<void> asked;
  std::promise<void> release;
  std::atomic<int> questions{0};
  const auto released = release.get_future().share();
  // Destroyed first: it may still be in an attempt that was broken off.
  FakeCoordinator coordinator;
  coordinator.refuse = [&](const std::string& method) {
    if (method != "LeaseData") return absl::OkStatus();
    if (questions++ == 0) asked.set_value();
    if (!answers) released.wait();
    return absl::UnavailableError("not now");
  };
  // This call would not be broken off.
  std::atomic<int> slept{0};
  CoordinatorSession::Options options = Options(coordinator);
  options.sleep = [&](Duration) { ++slept; };
  auto session = std::make_unique<CoordinatorSession>(coordinator.channel(), options);
  REQUIRE(session->Register({}, seconds(20)).ok());
  absl::Status ended;
  std::thread asking([&] { ended = session->LeaseData({}).status(); });
  asked.get_future().wait();
  session->EndLeases();
  asking.join();
  CHECK(absl::IsCancelled(ended));
  CHECK(absl::IsCancelled(session->LeaseData({}).status()));
  CHECK(slept == 0);
  release.set_value();
}

}  // namespace
}  // namespace leeway::coordinator_session
