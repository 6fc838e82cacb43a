// Sends every message to the coordinator, with each field missing or absurd. A refused message must
// have changed nothing. The messages that are accepted are listed here.
#include <functional>
#include <set>

#include <google/protobuf/text_format.h>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "run/metrics_log.h"
#include "tests/absurd.h"
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::absurd_messages {
namespace {

using testing::Absurd;
using testing::Absurdities;

// A job that trains, with or without committed sets.
std::unique_ptr<Scenario> Training(bool committed = false) {
  CoordinatorOptions options = TestOptions({.cut_every = 10});
  if (committed) options.job.mutable_consistency()->set_backup_workers(1);
  auto job = std::make_unique<Scenario>(std::move(options));
  job->Start();
  job->Beat(0, 5).IgnoreError();
  job->Beat(1, 5).IgnoreError();
  job->Carry();
  job->commands.clear();
  return job;
}

template <typename Request>
Request From(Scenario& job, uint32_t rank = 0) {
  Request request;
  request.set_job(kJob);
  request.set_rank(rank);
  request.set_incarnation(job.incarnations.at(rank));
  request.set_generation(job.generation);
  return request;
}

// Returns the names of the messages that are answered OK. A refused message must leave no trace.
template <typename Request>
std::vector<std::string> LetIn(
    const std::function<Request(Scenario&)>& valid,
    const std::function<absl::Status(CoordinatorCore&, const Request&, Time)>& send,
    bool committed = false) {
  std::vector<std::string> let_in;
  const auto base = Training(committed);
  for (const Absurd& absurd : Absurdities(valid(*base))) {
    const auto job = Training(committed);
    const std::string before = job->core.Status(job->now).SerializeAsString();
    const absl::Status status =
        send(job->core, static_cast<const Request&>(*absurd.message), job->now);
    if (status.ok()) {
      let_in.push_back(absurd.name);
      continue;
    }
    INFO(Request::descriptor()->name() << ": " << absurd.name << ": " << status);
    CHECK(job->core.Status(job->now).SerializeAsString() == before);
    CHECK(job->core.TakeCommands().empty());
    CHECK(testing::IsShowable(std::string(status.message())));
  }
  return let_in;
}

bool AllAllowed(const std::vector<std::string>& let_in, const std::set<std::string>& prefixes) {
  bool all = true;
  for (const std::string& name : let_in) {
    const bool known =
        std::any_of(prefixes.begin(), prefixes.end(),
                    [&](const std::string& prefix) { return absl::StartsWith(name, prefix); });
    if (!known) UNSCOPED_INFO("let in: " << name);
    all &= known;
  }
  return all;
}

v1::HeartbeatRequest Heartbeat(Scenario& job) {
  auto request = From<v1::HeartbeatRequest>(job);
  REQUIRE(google::protobuf::TextFormat::MergeFromString(
      "clock: 7 steps {clock: 7 epoch: 0.5 steps: 2 examples: 64 train_loss: 1.5 "
      "learning_rate: 0.1 compute_seconds: 0.2} "
      "evaluations {clock: 7 test_loss: 1.5 test_accuracy: 0.5}",
      &request));
  return request;
}

absl::Status Send(CoordinatorCore& core, const v1::HeartbeatRequest& request, Time now) {
  return core.Heartbeat(request, now).status();
}

// Checks that the recorded values can be read again. Only losses and errors may have any value,
// because they may diverge.
void CheckLines(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    std::string line;
    if (const auto* step = std::get_if<StepRecord>(&command)) line = MetricsLine(*step, 1);
    if (const auto* value = std::get_if<EvaluationRecord>(&command)) line = MetricsLine(*value, 1);
    if (line.empty()) continue;
    const auto json = nlohmann::json::parse(line);
    for (const auto& [key, value] : json.items()) {
      INFO(line.substr(0, 400));
      const bool of_values = absl::EndsWith(key, "_loss") || key == "test_mae" || key == "test_r2";
      if (!of_values) CHECK_FALSE(value.is_null());
      if (absl::EndsWith(key, "_accuracy")) CHECK((value >= 0 && value <= 1));
      if (key == "clock") CHECK(value <= 1000);
      if (absl::EndsWith(key, "seconds")) CHECK(value >= 0);
    }
  }
}

TEST_CASE("a heartbeat's numbers are checked before anything is recorded") {
  const auto base = Training();
  for (const Absurd& absurd : Absurdities(Heartbeat(*base))) {
    INFO(absurd.name);
    const auto job = Training();
    const std::string before = job->core.Status(job->now).SerializeAsString();
    const auto& request = static_cast<const v1::HeartbeatRequest&>(*absurd.message);
    const absl::Status status = Send(job->core, request, job->now);
    const auto commands = job->core.TakeCommands();
    CheckLines(commands);
    if (status.ok()) continue;
    CHECK(job->core.Status(job->now).SerializeAsString() == before);
    CHECK(commands.empty());
  }
  const auto let_in = LetIn<v1::HeartbeatRequest>(Heartbeat, Send);
  for (const char* wrong :
       {"steps[0].epoch = nan", "steps[0].epoch = inf", "steps[0].epoch = -1.000000",
        "evaluations[0].test_accuracy = 7.000000", "evaluations[0].test_accuracy = nan",
        "steps[0].clock = 18446744073709551615", "evaluations[0].clock = 18446744073709551615",
        "clock = 18446744073709551615", "steps[0].wait_seconds = -1.000000",
        "steps[0].examples = 9223372036854775808", "incarnation = 18446744073709551615"}) {
    INFO(wrong);
    CHECK(std::find(let_in.begin(), let_in.end(), wrong) == let_in.end());
  }
}

TEST_CASE("a heartbeat is one line of the log, however many clocks it tells of") {
  const auto job = Training();
  v1::HeartbeatRequest request = Heartbeat(*job);
  for (uint64_t clock = 8; clock < 30; ++clock) {
    *request.add_steps() = request.steps(0);
    request.mutable_steps()->rbegin()->set_clock(clock);
    request.mutable_steps()->rbegin()->set_train_loss(static_cast<double>(clock));
  }
  REQUIRE(Send(job->core, request, job->now).ok());
  const auto lines = job->Take<StepRecord>();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].metrics.clock() == 29);
  CHECK(lines[0].metrics.steps() == 46);
  CHECK(lines[0].metrics.examples() == 64 * 23);
  CHECK(lines[0].metrics.train_loss() == Approx((1.5 + (8 + 29) * 22 / 2.0) / 23));
}

TEST_CASE("what workers say of stopping, leaving and data is checked whole") {
  const auto leave = [](Scenario& job) {
    auto request = From<v1::LeaveRequest>(job);
    request.set_clock(7);
    request.set_reason(v1::LEAVE_FAILED);
    request.set_message("bad data");
    return request;
  };
  const auto left =
      LetIn<v1::LeaveRequest>(leave, [](CoordinatorCore& core, const v1::LeaveRequest& request,
                                        Time now) { return core.Leave(request, now).status(); });
  // A clock below the known one is accepted, and so are a text, which is shortened, and whether the
  // worker waits.
  CHECK(AllAllowed(left, {"clock missing", "clock = 0", "message", "waits"}));
  const auto stop =
      LetIn<v1::StopAtRequest>([](Scenario& job) { return From<v1::StopAtRequest>(job); },
                               [](CoordinatorCore& core, const v1::StopAtRequest& request,
                                  Time now) { return core.StopAt(request, now).status(); });
  CHECK(AllAllowed(stop, {}));
  const auto lease =
      LetIn<v1::LeaseDataRequest>([](Scenario& job) { return From<v1::LeaseDataRequest>(job); },
                                  [](CoordinatorCore& core, const v1::LeaseDataRequest& request,
                                     Time now) { return core.LeaseData(request, now).status(); });
  CHECK(AllAllowed(lease, {}));
}

TEST_CASE("what workers say when they register is checked whole") {
  const auto let_in = LetIn<v1::RegisterWorkerRequest>(
      [](Scenario&) {
        v1::RegisterWorkerRequest request = WorkerRequest(1, 101);
        request.set_link(1e9);
        return request;
      },
      [](CoordinatorCore& core, const v1::RegisterWorkerRequest& request, Time now) {
        return core.RegisterWorker(request, now).status();
      });
  // Another host, process or nonce is a new life of the rank, and another rank is a new life of
  // that rank. Without a schema the worker takes the job's. A process that maps the worker's memory
  // does not trust the offer.
  CHECK(AllAllowed(let_in, {"host missing",
                            "host = ''",
                            "host = '../x",
                            "pid",
                            "nonce",
                            "rank missing",
                            "rank = 0",
                            "schema missing",
                            "steps_per_epoch missing",
                            "steps_per_epoch = 0",
                            "job_only",
                            "reads_only",
                            "job_sha256 missing",
                            "link missing",
                            "link = 7",
                            "link = 1e",
                            "link = inf",
                            "link = 1000",
                            "build.version",
                            "network",
                            "memory_host",
                            "contributions",
                            "batches_per_epoch"}));
}

TEST_CASE("what servers say of themselves is checked whole") {
  const auto registered = LetIn<v1::RegisterServerRequest>(
      [](Scenario&) {
        v1::RegisterServerRequest request;
        *request.mutable_build() = ThisBuild();
        request.set_index(1);
        request.set_address("server1:1");
        request.set_local_address("unix-abstract:leeway-1");
        request.set_host("0123456789abcdef");
        request.set_nonce(1);
        request.set_job(kJob);
        return request;
      },
      [](CoordinatorCore& core, const v1::RegisterServerRequest& request, Time now) {
        return core.RegisterServer(request, now).status();
      });
  // Another nonce is another process, which is not believed before it is heard once more.
  CHECK(AllAllowed(registered,
                   {"index missing", "index = 0", "nonce", "job missing", "job = 0",
                    "local_address missing", "local_address = ''", "host missing", "host = '",
                    "held_generation = 0", "build.version", "network", "pid"}));
  const auto beat = LetIn<v1::ServerHeartbeatRequest>(
      [](Scenario& job) {
        v1::ServerHeartbeatRequest request;
        request.set_job(kJob);
        request.set_index(1);
        request.set_nonce(1);
        request.set_generation(job.generation);
        request.add_synced()->set_shard(1);
        request.mutable_load()->set_held_bytes(10);
        request.mutable_load()->set_held_bytes_max(20);
        return request;
      },
      [](CoordinatorCore& core, const v1::ServerHeartbeatRequest& request, Time now) {
        return core.ServerHeartbeat(request, now).status();
      });
  CHECK(AllAllowed(
      beat, {"index missing", "index = 0", "synced missing", "synced one short",
             "synced[0].shard missing", "synced[0].shard = 0", "wants_incarnations", "load.refused",
             "load missing", "load.held_bytes missing", "load.held_bytes = 0",
             "load.held_bytes_max missing", "load.held_bytes_max = 0", "load.held_bytes = 2199",
             "load.held_bytes_max = 2199"}));
}

TEST_CASE("parts of checkpoints are checked whole") {
  const auto let_in = LetIn<v1::ShardSavedRequest>(
      [](Scenario& job) {
        v1::ShardSavedRequest request;
        request.set_job(kJob);
        request.set_generation(job.generation);
        request.set_index(1);
        request.set_clock(10);
        *request.mutable_shard() = TestFile("shard-1");
        return request;
      },
      [](CoordinatorCore& core, const v1::ShardSavedRequest& request, Time now) {
        return core.ShardSaved(request, now);
      });
  // A part of another shard is accepted, and so is a text, which says that the part failed.
  CHECK(AllAllowed(let_in, {"index missing", "index = 0", "error", "shard.bytes = 2199"}));
}

TEST_CASE("what is held of a clock is checked whole") {
  const auto let_in = LetIn<v1::ContributionsHeldRequest>(
      [](Scenario& job) {
        v1::ContributionsHeldRequest request;
        request.set_job(kJob);
        request.set_generation(job.generation);
        request.set_index(1);
        request.add_ranks(0);
        request.add_ranks(1);
        request.add_held_us(5);
        request.add_held_us(5);
        request.set_epoch(1);
        return request;
      },
      [](CoordinatorCore& core, const v1::ContributionsHeldRequest& request, Time now) {
        return core.ContributionsHeld(request, now);
      },
      true);
  CHECK(AllAllowed(let_in, {"index missing", "index = 0", "ranks[0] = 0", "again", "held_us",
                            "epoch missing", "epoch = 0", "refused[0] = 0"}));
}

}  // namespace
}  // namespace leeway::absurd_messages
