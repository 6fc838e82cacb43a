// Sends every message to a server's ShardControl, with each field missing or absurd: the server
// stays as it was, and the job goes on. The same for lives that were never given out.
#include <filesystem>
#include <set>
#include <thread>

#include <sys/stat.h>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/protocol.h"
#include "common/rpc/channel.h"
#include "config/job.h"
#include "leeway/v1/coordinator.grpc.pb.h"
#include "leeway/v1/parameter_server.grpc.pb.h"
#include "server/node/server_process.h"
#include "tests/absurd.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::control_messages {
namespace {

using Catch::Matchers::Contains;
using testing::Absurd;
using testing::Absurdities;

constexpr uint32_t kServers = 2;
constexpr uint32_t kWorkers = 2;
constexpr uint64_t kValues = 1000;

v1::TrainingJob SmallJob(std::vector<std::string> sets) {
  auto job = ParseJob(R"(
apiVersion: leeway/v1
kind: TrainingJob
metadata: {name: control}
model: {layers: [{dense: {units: 10}}], loss: squared}
data: {train: {type: csv, files: x.csv}, batch_size: 8}
exchange: {type: gradient}
consistency: {mode: sync}
update: {type: sgd, learning_rate: 1, momentum: 0.5}
servers: {count: 2, block_bytes: 1024}
workers: {count: 2}
stop: {clocks: 100}
checkpoint: {every: {clocks: 50}}
limits: {lease_seconds: 600}
)",
                      "job.yaml", {.sets = std::move(sets), .environment = {}});
  INFO(job.status().message());
  REQUIRE(job.ok());
  return *job;
}

v1::ModelSchema SmallSchema() {
  v1::ModelSchema schema;
  v1::TensorSpec& weight = *schema.add_tensors();
  weight.set_name("dense_0/weight");
  weight.add_shape(kValues);
  schema.set_trained(kValues);
  schema.set_total(kValues);
  return schema;
}

template <typename Reply, typename Stub, typename Method, typename Request>
absl::StatusOr<Reply> Call(Stub& stub, Method method, const Request& request) {
  const Time deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (true) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    Reply reply;
    const grpc::Status status = (stub.*method)(&context, request, &reply);
    if (status.ok()) return reply;
    // The server is still registering, or is asking the coordinator.
    const bool again = status.error_code() == grpc::StatusCode::UNAVAILABLE &&
                       std::chrono::steady_clock::now() < deadline;
    if (!again) {
      return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                          status.error_message());
    }
  }
}

// A job of two servers; its two workers are this test.
class Job {
 public:
  explicit Job(std::vector<std::string> sets = {}) : job_(SmallJob(std::move(sets))) {
    for (uint32_t index = 0; index < kServers; ++index) {
      ServerOptions options;
      options.index = index;
      options.listen = "127.0.0.1:0";
      options.job = job_;
      options.run_dir = folder_.path();
      if (index > 0) options.coordinator = servers_[0]->address();
      auto server = ServerProcess::Start(options);
      REQUIRE(server.ok());
      servers_.push_back(std::move(*server));
      threads_.emplace_back([server = servers_.back().get()] { server->Run(); });
    }
    coordinator = v1::Coordinator::NewStub(MakeChannel(servers_[0]->address()));
    // Both ranks are asked for before either is answered.
    std::thread other([this] { Register(1); });
    Register(0);
    other.join();
    for (const std::string& address : lives[0].servers()) {
      control.push_back(v1::ShardControl::NewStub(MakeChannel(address)));
      data.push_back(v1::ParameterServer::NewStub(MakeChannel(address)));
    }
    for (uint32_t block = 0; block < blocks(); ++block) {
      CHECK(Push(&v1::ParameterServer::Stub::Initialize, 0, block, 0).ok());
    }
  }

  ~Job() {
    v1::StopJobRequest stop;
    Call<v1::StopJobReply>(*coordinator, &v1::Coordinator::Stub::StopJob, stop).IgnoreError();
    for (uint32_t rank = 0; rank < kWorkers; ++rank) {
      v1::LeaveRequest leave;
      leave.set_job(lives[rank].job_id());
      leave.set_rank(rank);
      leave.set_incarnation(lives[rank].incarnation());
      leave.set_clock(clock_);
      leave.set_reason(v1::LEAVE_STOPPED);
      leave.set_generation(lives[rank].generation());
      Call<v1::LeaveReply>(*coordinator, &v1::Coordinator::Stub::Leave, leave).IgnoreError();
    }
    for (std::thread& thread : threads_) thread.join();
  }

  uint32_t blocks() const {
    return static_cast<uint32_t>((kValues + lives[0].block_elements() - 1) /
                                 lives[0].block_elements());
  }

  v1::ExchangeHeader Header(uint32_t rank, uint32_t block) const {
    v1::ExchangeHeader header;
    header.set_job(lives[rank].job_id());
    header.set_rank(rank);
    header.set_incarnation(lives[rank].incarnation());
    header.set_generation(lives[rank].generation());
    header.set_block(block);
    header.set_clock(clock_);
    header.set_examples(8);
    return header;
  }

  const std::string& folder() const { return folder_.path(); }

  // Returns every block's version and values, each rank's position, and what the coordinator
  // reports.
  std::string State() {
    std::string state;
    for (uint32_t block = 0; block < blocks(); ++block) {
      v1::PullRequest pull;
      *pull.mutable_header() = Header(0, block);
      pull.set_latest(true);
      const auto reply =
          Call<v1::PullReply>(*data[block % kServers], &v1::ParameterServer::Stub::Pull, pull);
      INFO(reply.status());
      REQUIRE(reply.ok());
      absl::StrAppend(&state, reply->SerializeAsString());
    }
    for (uint32_t rank = 0; rank < kWorkers; ++rank) {
      for (auto& stub : data) {
        const auto reply = Attach(*stub, rank, lives[rank].incarnation());
        INFO(reply.status());
        REQUIRE(reply.ok());
        absl::StrAppend(&state, reply->SerializeAsString());
      }
    }
    auto status = Call<v1::JobStatus>(*coordinator, &v1::Coordinator::Stub::GetJobStatus,
                                      v1::GetJobStatusRequest());
    REQUIRE(status.ok());
    status->clear_seconds();
    for (auto& worker : *status->mutable_workers()) worker.clear_seconds_since_heartbeat();
    // The load is that of the last heartbeat.
    for (auto& server : *status->mutable_servers()) server.clear_load();
    return absl::StrCat(state, status->DebugString());
  }

  absl::StatusOr<v1::AttachReply> Attach(v1::ParameterServer::Stub& stub, uint32_t rank,
                                         uint64_t incarnation,
                                         std::optional<uint32_t> shard = std::nullopt) {
    v1::AttachRequest request;
    request.set_job(lives[rank].job_id());
    request.set_rank(rank);
    request.set_incarnation(incarnation);
    request.set_generation(lives[rank].generation());
    if (shard) request.set_shard(*shard);
    return Call<v1::AttachReply>(stub, &v1::ParameterServer::Stub::Attach, request);
  }

  // Both workers make one clock, on every block.
  bool Exchanges() {
    std::vector<std::thread> calls;
    std::atomic<bool> all = true;
    for (uint32_t rank = 0; rank < kWorkers; ++rank) {
      for (uint32_t block = 0; block < blocks(); ++block) {
        calls.emplace_back([=, this, &all] {
          if (!Push(&v1::ParameterServer::Stub::PushPull, rank, block, 1).ok()) all = false;
        });
      }
    }
    for (std::thread& call : calls) call.join();
    ++clock_;
    return all;
  }

  // Returns what the coordinator has told the servers, as far as a worker can know it.
  v1::ConfigureRequest Configuration() const {
    v1::ConfigureRequest request;
    const v1::RegisterWorkerReply& life = lives[0];
    request.set_job(life.job_id());
    *request.mutable_schema() = life.schema();
    request.set_block_elements(life.block_elements());
    *request.mutable_length() = life.length();
    request.set_cut_every(life.cut_every());
    request.set_run_dir(folder_.path());
    request.set_generation(life.generation());
    request.mutable_placement()->set_epoch(life.epoch());
    for (uint32_t server = 0; server < kServers; ++server) {
      request.add_servers(life.servers(static_cast<int>(server)));
      *request.add_local_servers() = life.local_servers(static_cast<int>(server));
      request.mutable_placement()->add_shards()->set_owner(server);
    }
    request.set_load(true);
    return request;
  }

  std::unique_ptr<v1::Coordinator::Stub> coordinator;
  std::vector<std::unique_ptr<v1::ShardControl::Stub>> control;
  std::vector<std::unique_ptr<v1::ParameterServer::Stub>> data;
  v1::RegisterWorkerReply lives[kWorkers];

 private:
  void Register(uint32_t rank) {
    v1::RegisterWorkerRequest request;
    *request.mutable_build() = ThisBuild();
    request.set_rank(rank);
    request.set_host("test");
    request.set_pid(rank + 1);
    request.set_nonce(rank + 1);
    *request.mutable_schema() = SmallSchema();
    request.set_steps_per_epoch(10);
    const auto reply = Call<v1::RegisterWorkerReply>(
        *coordinator, &v1::Coordinator::Stub::RegisterWorker, request);
    if (reply.ok()) lives[rank] = *reply;
  }

  template <typename Reply>
  absl::Status Push(grpc::Status (v1::ParameterServer::Stub::*method)(grpc::ClientContext*,
                                                                      const v1::PushRequest&,
                                                                      Reply*),
                    uint32_t rank, uint32_t block, float value) {
    const uint64_t size = lives[0].block_elements();
    const std::vector<float> values(std::min(size, kValues - block * size), value);
    v1::PushRequest request;
    *request.mutable_header() = Header(rank, block);
    request.set_payload(values.data(), values.size() * sizeof(float));
    return Call<Reply>(*data[block % kServers], method, request).status();
  }

  const v1::TrainingJob job_;
  TempFolder folder_;
  std::vector<std::unique_ptr<ServerProcess>> servers_;
  std::vector<std::thread> threads_;
  uint64_t clock_ = 0;
};

// Sends all variants to both servers, and returns the names of those that are answered OK. Variants
// whose names begin with one of `valid` are not absurd, and are not sent.
template <typename Reply, typename Method, typename Request>
std::string LetIn(Job& job, Method method, const Request& request,
                  const std::set<std::string>& valid = {}) {
  std::set<std::string> let_in;
  const std::string before = job.State();
  for (const Absurd& absurd : Absurdities(request)) {
    const auto is_valid = [&](const std::string& name) {
      return absl::StartsWith(absurd.name, name);
    };
    if (std::any_of(valid.begin(), valid.end(), is_valid)) continue;
    INFO(Request::descriptor()->name() << ": " << absurd.name);
    for (auto& stub : job.control) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
      Reply reply;
      const auto& message = static_cast<const Request&>(*absurd.message);
      const grpc::Status status = (stub.get()->*method)(&context, message, &reply);
      if (status.ok()) let_in.insert(absurd.name);
      CHECK(status.error_message().size() < 1100);
    }
    const bool as_it_was = job.State() == before;
    REQUIRE(as_it_was);
  }
  return absl::StrJoin(let_in, "; ");
}

TEST_CASE("an absurd configuration is refused whole, and the server stays as it was") {
  Job job;
  REQUIRE(job.Exchanges());
  v1::ConfigureRequest request = job.Configuration();
  // First the unchanged message: the attack begins where the coordinator left off.
  for (auto& stub : job.control) {
    CHECK(Call<v1::ConfigureReply>(*stub, &v1::ShardControl::Stub::Configure, request).ok());
  }
  CHECK(LetIn<v1::ConfigureReply>(job, &v1::ShardControl::Stub::Configure, request) == "");
  // Each variant differs in one field from a message that would take effect. In the same generation
  // it would change which server holds what.
  request.set_generation(request.generation() + 1);
  request.mutable_placement()->set_epoch(request.placement().epoch() + 1);
  CHECK(LetIn<v1::ConfigureReply>(
            job, &v1::ShardControl::Stub::Configure, request,
            {"generation missing", "generation = 0", "auto_codec", "local_servers[0].host missing",
             "local_servers[0].host = ''", "local_servers[0].host = '..",
             "local_servers[0].address missing", "local_servers[0].address = ''",
             "placement.shards[0].synced"}) == "");
  v1::ConfigureRequest bare;
  bare.set_job(request.job());
  bare.set_generation(request.generation());
  for (auto& stub : job.control) {
    const auto reply = Call<v1::ConfigureReply>(*stub, &v1::ShardControl::Stub::Configure, bare);
    CHECK(absl::IsInvalidArgument(reply.status()));
  }
  CHECK(job.Exchanges());
}

TEST_CASE("absurd commands are refused, and the server stays as it was") {
  Job job;
  REQUIRE(job.Exchanges());
  v1::SetLiveRequest live;
  live.set_job(job.lives[0].job_id());
  live.set_rank(1);
  live.set_live(true);
  // In sync mode every rank holds the others up, whatever the message says.
  const std::string lives = LetIn<v1::SetLiveReply>(job, &v1::ShardControl::Stub::SetLive, live);
  CHECK(lives == "live = 0; live missing; rank = 0; rank missing");
  v1::SaveRequest save;
  save.set_job(live.job());
  save.set_clock(1);
  save.set_generation(job.lives[0].generation());
  save.set_shard(1);
  // Asks for the shard that the other server has.
  CHECK(LetIn<v1::SavedShard>(job, &v1::ShardControl::Stub::Save, save) ==
        "shard = 0; shard missing");
  v1::ShutdownRequest shutdown;
  shutdown.set_job(live.job());
  shutdown.set_outcome(v1::JOB_FINISHED);
  CHECK(LetIn<v1::ShutdownReply>(job, &v1::ShardControl::Stub::Shutdown, shutdown) == "");
  CHECK(job.Exchanges());
}

TEST_CASE("absurd sets of contributors are refused, and the server stays as it was") {
  Job job({"workers.on_worker_loss=continue"});
  REQUIRE(job.Exchanges());
  v1::CommitSetRequest set;
  set.set_job(job.lives[0].job_id());
  set.set_generation(job.lives[0].generation());
  set.set_clock(1);
  set.add_ranks(0);
  set.add_ranks(1);
  // Clock 0 has its set, and the set of clock 1 may be of one rank. A server ignores sets of a
  // future generation.
  CHECK(LetIn<v1::CommitSetReply>(
            job, &v1::ShardControl::Stub::CommitSet, set,
            {"clock missing", "clock = 0", "ranks one short", "generation"}) == "");
  CHECK(job.Exchanges());
}

TEST_CASE("an incarnation that the coordinator gave to nobody is not believed") {
  Job job;
  REQUIRE(job.Exchanges());
  const std::string before = job.State();
  for (const uint64_t forged : {UINT64_MAX, UINT64_MAX - 1, job.lives[1].incarnation() + 1}) {
    for (auto& stub : job.data) {
      grpc::ClientContext context;
      v1::AttachRequest request;
      request.set_job(job.lives[1].job_id());
      request.set_rank(1);
      request.set_incarnation(forged);
      request.set_generation(job.lives[1].generation());
      v1::AttachReply reply;
      const grpc::Status status = stub->Attach(&context, request, &reply);
      CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
      CHECK_THAT(status.error_message(), Contains("incarnation"));
      v1::PushRequest push;
      *push.mutable_header() = job.Header(1, 0);
      push.mutable_header()->set_incarnation(forged);
      v1::PullReply pulled;
      grpc::ClientContext another;
      CHECK_FALSE(stub->PushPull(&another, push, &pulled).ok());
    }
  }
  for (auto& stub : job.data) {
    CHECK(absl::IsInvalidArgument(job.Attach(*stub, 1, job.lives[1].incarnation(), 77).status()));
  }
  CHECK(job.State() == before);
  CHECK(job.Exchanges());
}

uint32_t ModeOf(const std::filesystem::path& path) {
  return static_cast<uint32_t>(std::filesystem::status(path).permissions());
}

TEST_CASE("where the job is private only its user can read the run folder") {
  const mode_t before = umask(022);
  const bool is_private = GENERATE(true, false);
  {
    Job job({absl::StrCat("metadata.private=", is_private ? "true" : "false")});
    REQUIRE(job.Exchanges());
    v1::SaveRequest save;
    save.set_job(job.lives[0].job_id());
    save.set_clock(1);
    save.set_generation(job.lives[0].generation());
    REQUIRE(Call<v1::SavedShard>(*job.control[0], &v1::ShardControl::Stub::Save, save).ok());
    size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(job.folder())) {
      INFO(entry.path());
      const uint32_t open_mode = entry.is_directory() ? 0755 : 0644;
      CHECK(ModeOf(entry.path()) == (is_private ? open_mode & 0700 : open_mode));
      ++files;
    }
    CHECK(files >= 5);
    if (is_private) CHECK(ModeOf(job.folder()) == 0700);
  }
  umask(before);
}

TEST_CASE("nothing is written or loaded through a link that leads out of the run folder") {
  TempFolder elsewhere;
  Job job;
  REQUIRE(job.Exchanges());
  std::filesystem::create_directory_symlink(elsewhere.path(), job.folder() + "/checkpoints");
  v1::SaveRequest save;
  save.set_job(job.lives[0].job_id());
  save.set_clock(1);
  save.set_generation(job.lives[0].generation());
  const auto saved = Call<v1::SavedShard>(*job.control[0], &v1::ShardControl::Stub::Save, save);
  CHECK(absl::IsPermissionDenied(saved.status()));
  CHECK(std::filesystem::is_empty(elsewhere.path()));
  v1::ConfigureRequest request = job.Configuration();
  request.set_generation(request.generation() + 1);
  request.mutable_placement()->set_epoch(request.placement().epoch() + 1);
  std::filesystem::create_directories(elsewhere.path() + "/clock-000000050");
  for (const std::string& checkpoint : std::vector<std::string>{
           job.folder() + "/checkpoints/clock-000000050", job.folder() + "/x/../../evil",
           elsewhere.path() + "/clock-000000050", "/etc"}) {
    INFO(checkpoint);
    request.set_checkpoint(checkpoint);
    const auto reply =
        Call<v1::ConfigureReply>(*job.control[0], &v1::ShardControl::Stub::Configure, request);
    CHECK(absl::IsPermissionDenied(reply.status()));
  }
  request.clear_checkpoint();
  request.set_run_dir(elsewhere.path());
  CHECK(absl::IsPermissionDenied(
      Call<v1::ConfigureReply>(*job.control[0], &v1::ShardControl::Stub::Configure, request)
          .status()));
  CHECK(std::filesystem::is_empty(elsewhere.path() + "/clock-000000050"));
  CHECK(job.Exchanges());
}

}  // namespace
}  // namespace leeway::control_messages
