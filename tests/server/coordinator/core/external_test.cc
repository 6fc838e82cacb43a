// Jobs of external programs: the first worker brings the update rule and the factors.
#include <algorithm>
#include <string>

#include "config/brought_update.h"
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::external {
namespace {

using Catch::Matchers::Contains;

const char* const kRule = "{type: sgd, momentum: 0.9, learning_rate: 0.1}";
const char* const kOther = "{type: adam, learning_rate: 0.1}";

CoordinatorOptions External(const JobShape& shape = {}) {
  CoordinatorOptions options = TestOptions(shape);
  options.job.mutable_model()->set_type(v1::MODEL_TYPE_EXTERNAL);
  options.job.mutable_data()->set_type(v1::DATA_TYPE_EXTERNAL);
  options.job.mutable_data()->set_batch_size(10);
  options.job.mutable_data()->set_examples(100);
  return options;
}

CoordinatorOptions WithUpdate(const char* update) {
  CoordinatorOptions options = External();
  *options.job.mutable_update() = ResolveBroughtUpdate(*ParseUpdate(update)).value();
  return options;
}

v1::RegisterWorkerRequest Bringing(uint32_t rank, const char* update) {
  v1::RegisterWorkerRequest request = WorkerRequest(rank, 100 + rank);
  if (update != nullptr) *request.mutable_update() = *ParseUpdate(update);
  return request;
}

absl::StatusOr<v1::RegisterWorkerReply> Register(Scenario& job,
                                                 const v1::RegisterWorkerRequest& request) {
  job.Carry();
  return job.Remember(job.core.RegisterWorker(request, job.now));
}

// All workers register with kRule, and the servers make their blocks.
void Start(Scenario& job) {
  for (uint32_t i = 0; i < job.servers; ++i) job.Server(i).IgnoreError();
  for (const uint32_t rank : {0u, 1u}) Register(job, Bringing(rank, kRule)).IgnoreError();
  for (const ConfigureServer& command : job.Take<ConfigureServer>()) {
    CHECK(UpdateYaml(command.request.update()) == kRule);
    job.core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, job.now);
  }
  job.Carry();
}

void CheckRefused(const absl::Status& status, absl::StatusCode code, const std::string& message) {
  CHECK(status.code() == code);
  CHECK(std::string(status.message()) == message);
}

TEST_CASE("the first worker's rule is the job's: servers, workers, record and log have it") {
  Scenario job(External());
  Start(job);
  // Every default is filled in, as in a rule from a job file.
  const auto reply = Register(job, Bringing(1, kRule));
  REQUIRE(reply.ok());
  CHECK(UpdateYaml(reply->job().update()) == kRule);
  CHECK(reply->job().update().sgd().has_nesterov());
  CHECK(job.Server(1)->job().update().learning_rate() == 0.1);
  const auto records = job.Take<WriteRecord>();
  REQUIRE_FALSE(records.empty());
  for (const WriteRecord& write : records) CHECK(UpdateYaml(write.record.update()) == kRule);
  std::vector<std::string> brought;
  for (const Event& event : job.Take<Event>()) {
    if (event.name == "update_brought") brought.push_back(event.message);
  }
  REQUIRE(brought.size() == 1);
  CHECK(brought[0] ==
        std::string("the update rule is ") + kRule + ", brought by worker 0 (process 100 on host)");
}

TEST_CASE("another worker's rule is refused, with both of them") {
  Scenario job(External());
  Register(job, Bringing(1, kRule)).IgnoreError();
  CheckRefused(Register(job, Bringing(0, kOther)).status(), absl::StatusCode::kFailedPrecondition,
               "worker 0 (process 100 on host): its optimizer is {type: adam, learning_rate: 0.1}, "
               "but that of worker 1 (process 101 on host) is {type: sgd, momentum: 0.9, "
               "learning_rate: 0.1}; start every worker with the same program and options");
  CHECK(absl::IsUnavailable(Register(job, Bringing(0, kRule)).status()));
}

TEST_CASE("a job's own rule is the program's, too, or the program is refused") {
  Scenario job(
      WithUpdate("{type: sgd, momentum: 0.9, learning_rate: 0.1, schedule: {type: cosine}}"));
  CHECK(absl::IsUnavailable(Register(job, Bringing(0, kRule)).status()));
  CHECK(absl::IsUnavailable(Register(job, Bringing(0, nullptr)).status()));
  CheckRefused(Register(job, Bringing(1, kOther)).status(), absl::StatusCode::kFailedPrecondition,
               "worker 1 (process 101 on host): its optimizer is {type: adam, learning_rate: 0.1}, "
               "but the job's update is {type: sgd, momentum: 0.9, learning_rate: 0.1, schedule: "
               "{type: cosine}}; make them equal, or remove `update` from the job, so that the "
               "program's optimizer counts");
  for (uint32_t i = 0; i < job.servers; ++i) job.Server(i).IgnoreError();
  Register(job, Bringing(1, kRule)).IgnoreError();
  const auto commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 2);
  for (const ConfigureServer& command : commands) CHECK_FALSE(command.request.has_update());
}

TEST_CASE("a gradient exchange without any rule does not begin, and says what to do") {
  Scenario job(External());
  CheckRefused(Register(job, Bringing(0, nullptr)).status(), absl::StatusCode::kInvalidArgument,
               "worker 0 (process 100 on host): the job has no `update`, and this program does not "
               "say which optimizer it has: set leeway_join_options.update, or give the job a "
               "rule, such as update: {type: sgd, learning_rate: 0.05}");
  // The answer does not depend on who came first.
  Register(job, Bringing(1, kRule)).IgnoreError();
  CHECK(absl::IsInvalidArgument(Register(job, Bringing(0, nullptr)).status()));
}

TEST_CASE("what is no rule is refused") {
  Scenario job(External());
  v1::RegisterWorkerRequest request = Bringing(0, kRule);
  request.mutable_update()->set_learning_rate(-1);
  CheckRefused(Register(job, request).status(), absl::StatusCode::kInvalidArgument,
               "worker 0 (process 100 on host): update.learning_rate: must be above 0; it is -1");
  request.mutable_update()->Clear();
  CHECK(absl::IsInvalidArgument(Register(job, request).status()));
  CHECK(absl::IsUnavailable(Register(job, Bringing(0, kRule)).status()));
}

TEST_CASE("other jobs take no rule and no factors from a worker") {
  Scenario job(JobShape{});
  CheckRefused(Register(job, Bringing(0, kRule)).status(), absl::StatusCode::kInvalidArgument,
               "worker 0 (process 100 on host) brings an update rule, but only jobs with "
               "model.type external accept one");
  v1::RegisterWorkerRequest request = Bringing(0, nullptr);
  request.mutable_schema()->mutable_tensors(1)->mutable_factors();
  CheckRefused(Register(job, request).status(), absl::StatusCode::kInvalidArgument,
               "worker 0 (process 100 on host): tensor 'dense_0/bias' has factors of its own, "
               "which only jobs with model.type external accept: set update.factors instead");
  request = Bringing(0, nullptr);
  request.mutable_schema()->mutable_tensors(1)->set_begins_block(true);
  CheckRefused(Register(job, request).status(), absl::StatusCode::kInvalidArgument,
               "worker 0 (process 100 on host) asks for a block that begins with tensor "
               "'dense_0/bias', but only programs of a job with model.type external may do so");
}

TEST_CASE("the optimizer of a worker that makes its own steps is its own business") {
  JobShape shape;
  shape.elastic = true;
  CoordinatorOptions options = External(shape);
  options.job.mutable_exchange()->mutable_elastic()->clear_optimizer();
  Scenario job(options);
  v1::RegisterWorkerRequest first = Bringing(0, kRule), second = Bringing(1, kOther);
  first.mutable_schema()->mutable_tensors(0)->mutable_factors()->set_learning_rate(0.5);
  second.mutable_schema()->mutable_tensors(1)->mutable_factors()->set_learning_rate(2);
  second.mutable_schema()->mutable_tensors(1)->set_begins_block(true);
  for (uint32_t i = 0; i < job.servers; ++i) job.Server(i).IgnoreError();
  CHECK(absl::IsUnavailable(Register(job, first).status()));
  CHECK(absl::IsUnavailable(Register(job, second).status()));
  const auto commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 2);
  CHECK_FALSE(commands[0].request.has_update());
  for (const v1::TensorSpec& tensor : commands[0].request.schema().tensors()) {
    CHECK_FALSE(tensor.has_factors());
    CHECK_FALSE(tensor.begins_block());
  }
}

TEST_CASE("factors reach the servers, and differ on no worker") {
  Scenario job(External());
  v1::RegisterWorkerRequest first = Bringing(0, kRule), second = Bringing(1, kRule);
  first.mutable_schema()->mutable_tensors(1)->mutable_factors()->set_weight_decay(0);
  for (uint32_t i = 0; i < job.servers; ++i) job.Server(i).IgnoreError();
  CHECK(absl::IsUnavailable(Register(job, first).status()));
  CheckRefused(Register(job, second).status(), absl::StatusCode::kFailedPrecondition,
               "the optimizers differ: the factors of tensor 'dense_0/bias' are {learning_rate: 1, "
               "weight_decay: 1} in worker 1 (process 101 on host), but {learning_rate: 1, "
               "weight_decay: 0} in worker 0 (process 100 on host); start every worker with the "
               "same program and options");
  second.mutable_schema()->mutable_tensors(1)->mutable_factors()->set_weight_decay(0);
  // This registration states the default explicitly.
  second.mutable_schema()->mutable_tensors(0)->mutable_factors()->set_learning_rate(1);
  CHECK(absl::IsUnavailable(Register(job, second).status()));
  const auto commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 2);
  CHECK(commands[0].request.schema().tensors(1).factors().weight_decay() == 0);
  second.mutable_schema()->mutable_tensors(0)->mutable_factors()->set_learning_rate(-1);
  CheckRefused(Register(job, second).status(), absl::StatusCode::kInvalidArgument,
               "worker 1 (process 101 on host): the model's schema: tensor 'dense_0/weight': "
               "factors.learning_rate: must be at least 0; it is -1");
}

TEST_CASE("where blocks begin reaches the servers, and differs on no worker") {
  Scenario job(External());
  v1::RegisterWorkerRequest first = Bringing(0, kRule), second = Bringing(1, kRule);
  first.mutable_schema()->mutable_tensors(1)->set_begins_block(true);
  for (uint32_t i = 0; i < job.servers; ++i) job.Server(i).IgnoreError();
  CHECK(absl::IsUnavailable(Register(job, first).status()));
  CheckRefused(Register(job, second).status(), absl::StatusCode::kFailedPrecondition,
               "the optimizers differ: only one of worker 1 (process 101 on host) and worker 0 "
               "(process 100 on host) says that a block begins with tensor 'dense_0/bias'; start "
               "every worker with the same program and options");
  second.mutable_schema()->mutable_tensors(1)->set_begins_block(true);
  CHECK(absl::IsUnavailable(Register(job, second).status()));
  const auto commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 2);
  CHECK(commands[0].request.schema().tensors(1).begins_block());
}

// ---- lives of the coordinator

CoordinatorOptions::Resumed Checkpoint(const CoordinatorOptions& options, const char* rule) {
  CoordinatorOptions::Resumed resumed;
  resumed.folder = "/run/checkpoints/clock-50";
  resumed.manifest.set_clock(50);
  *resumed.manifest.mutable_job() = options.job;
  *resumed.manifest.mutable_job()->mutable_update() =
      ResolveBroughtUpdate(*ParseUpdate(rule)).value();
  *resumed.manifest.mutable_schema() = TestSchema();
  resumed.manifest.mutable_schema()->mutable_tensors(1)->mutable_factors()->set_weight_decay(0);
  return resumed;
}

TEST_CASE("a coordinator that was started again goes on with the rule on record") {
  Scenario first(External());
  Start(first);
  CoordinatorOptions options = External();
  options.before = first.Take<WriteRecord>().back().record;
  REQUIRE(options.before->has_update());
  options.generation = options.before->generation() + 1;
  options.incarnation_base = 1000;
  Scenario again(options);
  v1::RegisterWorkerRequest ask = WorkerRequest(0, 100);
  ask.set_job_only(true);
  CHECK(UpdateYaml(again.core.RegisterWorker(ask, again.now)->job().update()) == kRule);
  CheckRefused(
      Register(again, Bringing(0, kOther)).status(), absl::StatusCode::kFailedPrecondition,
      "worker 0 (process 100 on host): its optimizer is {type: adam, learning_rate: 0.1}, but that "
      "of the run so far is {type: sgd, momentum: 0.9, learning_rate: 0.1}; start "
      "every worker with the same program and options");
  Start(again);
  CHECK(again.Take<WriteRecord>().back().record.has_update());
  const auto names = again.EventNames();
  CHECK(std::count(names.begin(), names.end(), "update_brought") == 0);
}

TEST_CASE("after a coordinator was killed the factors are those of its newest checkpoint") {
  CoordinatorOptions options = External();
  options.resumed = Checkpoint(options, kRule);
  options.before.emplace().set_steps_per_epoch(10);
  *options.before->mutable_update() = options.resumed->manifest.job().update();
  Scenario again(options);
  v1::RegisterWorkerRequest request = Bringing(0, kRule);
  CHECK_THAT(std::string(Register(again, request).status().message()),
             Contains("{learning_rate: 1, weight_decay: 0} in the checkpoint /run/checkpoints/"));
  request.mutable_schema()->mutable_tensors(1)->mutable_factors()->set_weight_decay(0);
  CHECK(absl::IsUnavailable(Register(again, request).status()));
}

TEST_CASE("a job that is resumed may have another rule and other factors, of the first worker") {
  CoordinatorOptions options = External();
  options.resumed = Checkpoint(options, kRule);
  Scenario job(options);
  for (uint32_t i = 0; i < job.servers; ++i) job.Server(i).IgnoreError();
  const char* const slower = "{type: sgd, momentum: 0.9, learning_rate: 0.01}";
  CHECK(absl::IsUnavailable(Register(job, Bringing(0, slower)).status()));
  CHECK(absl::IsFailedPrecondition(Register(job, Bringing(1, kRule)).status()));
  CHECK(absl::IsUnavailable(Register(job, Bringing(1, slower)).status()));
  const auto commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 2);
  CHECK(UpdateYaml(commands[0].request.update()) == slower);
  CHECK_FALSE(commands[0].request.schema().tensors(1).has_factors());
}

TEST_CASE("a job that goes back, and a server that comes later, have the rule of before") {
  Scenario job(External());
  Start(job);
  job.Take<ConfigureServer>();
  // The server is a new process: what the previous one held is lost.
  REQUIRE(job.Server(1, 2)->job().has_update());
  job.Carry();
  const auto commands = job.Take<ConfigureServer>();
  REQUIRE_FALSE(commands.empty());
  for (const ConfigureServer& command : commands) {
    CHECK(command.request.generation() == 1);
    CHECK(UpdateYaml(command.request.update()) == kRule);
  }
}

TEST_CASE("checkpoints say which rule made them") {
  Scenario job(External({.cut_every = 10}));
  Start(job);
  for (const uint32_t rank : {0u, 1u}) Register(job, Bringing(rank, kRule)).IgnoreError();
  for (const uint32_t server : {0u, 1u}) REQUIRE(job.Shard(server, 10).ok());
  const auto manifests = job.Take<WriteManifest>();
  REQUIRE(manifests.size() == 1);
  CHECK(UpdateYaml(manifests[0].manifest.job().update()) == kRule);
}

absl::Status SayKept(Scenario& job, uint32_t rank) {
  v1::HeartbeatRequest request;
  request.set_job(kJob);
  request.set_rank(rank);
  request.set_incarnation(job.incarnations.at(rank));
  request.set_generation(job.generation);
  request.set_keeps_state(true);
  return job.core.Heartbeat(request, job.now).status();
}

TEST_CASE(
    "a program that says so keeps state: on record first, then in cuts, and a loss goes back") {
  Scenario job(External({.cut_every = 10}));
  Start(job);
  for (const uint32_t rank : {0u, 1u}) {
    const auto reply = Register(job, Bringing(rank, kRule));
    REQUIRE(reply.ok());
    CHECK_FALSE(reply->save_state());
  }
  CHECK(absl::IsUnavailable(SayKept(job, 1)));
  job.Carry();
  CHECK(SayKept(job, 1).ok());
  CHECK(job.Take<WriteRecord>().back().record.programs_keep_state());
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 10).ok());
  REQUIRE(job.State(0, 10).ok());
  CHECK(job.Take<WriteManifest>().empty());
  REQUIRE(job.State(1, 10).ok());
  const auto write = job.Take<WriteManifest>();
  REQUIRE(write.size() == 1);
  CHECK(write[0].manifest.worker_states_size() == 2);
  job.core.Answered(ManifestWritten{10, absl::OkStatus()}, job.now);
  job.EventNames();
  v1::RegisterWorkerRequest another = Bringing(1, kRule);
  another.set_nonce(900);
  another.set_pid(900);
  Register(job, another).IgnoreError();
  CHECK_THAT(job.EventNames(), Catch::Matchers::VectorContains(std::string("going_back")));
}

TEST_CASE("that programs keep state is known to the coordinator after, and to a resumed run") {
  CoordinatorOptions recorded = External({.cut_every = 10});
  recorded.before.emplace().set_programs_keep_state(true);
  CHECK(JobFacts(recorded).keeps_state());
  CoordinatorOptions resumed = External({.cut_every = 10});
  v1::CheckpointManifest& manifest = resumed.resumed.emplace().manifest;
  *manifest.mutable_job() = resumed.job;
  CHECK_FALSE(JobFacts(resumed).keeps_state());
  manifest.add_worker_states();
  CHECK(JobFacts(resumed).keeps_state());
  // The state of a different exchange is not a scheduler's state.
  manifest.mutable_job()->mutable_exchange()->mutable_delta();
  CHECK_FALSE(JobFacts(resumed).keeps_state());
}

TEST_CASE("Leeway's own workers do not say that they keep state") {
  Scenario job(JobShape{});
  job.Start();
  job.Carry();
  CheckRefused(SayKept(job, 0), absl::StatusCode::kInvalidArgument,
               "the heartbeat of worker 0: keeps_state: only programs of a job with model.type "
               "external may set it");
}

}  // namespace
}  // namespace leeway::external
