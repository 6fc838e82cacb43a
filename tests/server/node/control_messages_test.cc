// Sends messages to all services of a job's servers, with each field missing or absurd: the servers
// stay as they were, and the job goes on. The same for lives that were never given out.
#include <filesystem>
#include <set>
#include <span>

#include <sys/stat.h>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "tests/absurd.h"
#include "tests/server/node/two_servers.h"

namespace leeway::control_messages {
namespace {

using Catch::Matchers::Contains;
using testing::Absurd;
using testing::Absurdities;

template <typename Stub, typename Request, typename Reply>
auto Unary(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*)) {
  return [method](Stub& stub, grpc::ClientContext* context, const Request& request) {
    Reply reply;
    return (stub.*method)(context, request, &reply);
  };
}

// Sends all variants to each of `stubs`, and returns the names of those that are answered OK.
// Variants whose names begin with one of `valid` are not absurd, and are not sent.
template <typename Stubs, typename Request, typename Send>
std::string LetIn(Job& job, const Stubs& stubs, const Request& request, Send send,
                  const std::set<std::string>& valid = {}) {
  std::set<std::string> let_in;
  const std::string before = job.State();
  for (const Absurd& absurd : Absurdities(request)) {
    const auto is_valid = [&](const std::string& name) {
      return absl::StartsWith(absurd.name, name);
    };
    if (std::any_of(valid.begin(), valid.end(), is_valid)) continue;
    INFO(Request::descriptor()->name() << ": " << absurd.name);
    for (const auto& stub : stubs) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
      const auto& message = static_cast<const Request&>(*absurd.message);
      const grpc::Status status = send(*stub, &context, message);
      if (status.ok()) let_in.insert(absurd.name);
      CHECK(status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED);
      CHECK(testing::IsShowable(status.error_message()));
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
  const auto configure = Unary(&v1::ShardControl::Stub::Configure);
  CHECK(LetIn(job, job.control, request, configure) == "");
  // Each variant differs in one field from a message that would take effect. In the same generation
  // it would change which server holds what.
  request.set_generation(request.generation() + 1);
  request.mutable_placement()->set_epoch(request.placement().epoch() + 1);
  CHECK(LetIn(job, job.control, request, configure,
              {"generation missing", "generation = 0", "auto_codec",
               "local_servers[0].host missing", "local_servers[0].host = ''",
               "local_servers[0].host = '..", "local_servers[0].address missing",
               "local_servers[0].address = ''", "placement.shards[0].synced"}) == "");
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
  CHECK(LetIn(job, job.control, live, Unary(&v1::ShardControl::Stub::SetLive)) ==
        "live = 0; live missing; rank = 0; rank missing");
  v1::SaveRequest save;
  save.set_job(live.job());
  save.set_clock(1);
  save.set_generation(job.lives[0].generation());
  save.set_shard(1);
  // Asks for the shard that the other server has.
  CHECK(LetIn(job, job.control, save, Unary(&v1::ShardControl::Stub::Save)) ==
        "shard = 0; shard missing");
  v1::ShutdownRequest shutdown;
  shutdown.set_job(live.job());
  shutdown.set_outcome(v1::JOB_FINISHED);
  CHECK(LetIn(job, job.control, shutdown, Unary(&v1::ShardControl::Stub::Shutdown)) == "");
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
  CHECK(LetIn(job, job.control, set, Unary(&v1::ShardControl::Stub::CommitSet),
              {"clock missing", "clock = 0", "ranks one short", "generation"}) == "");
  CHECK(job.Exchanges());
}

// Sends the frame as a stream of its own, and reads all answers.
grpc::Status Stream(v1::ParameterServer::Stub& stub, grpc::ClientContext* context,
                    const v1::RequestFrame& frame) {
  const auto stream = stub.Exchange(context);
  stream->Write(frame);
  stream->WritesDone();
  for (v1::ReplyFrame answers; stream->Read(&answers);) {
  }
  return stream->Finish();
}

TEST_CASE("absurd exchanges are refused, and the server stays as it was") {
  Job job;
  // Every contribution below repeats one of this clock.
  const v1::ExchangeHeader header = job.Header(1, 0);
  REQUIRE(job.Exchanges());
  v1::AttachRequest attach;
  attach.set_job(header.job());
  attach.set_rank(1);
  attach.set_incarnation(header.incarnation());
  attach.set_generation(header.generation());
  LetIn(job, job.data, attach, Unary(&v1::ParameterServer::Stub::Attach));
  v1::PushRequest push;
  *push.mutable_header() = header;
  push.set_payload(std::string(1024, '\0'));
  LetIn(job, job.data, push, Unary(&v1::ParameterServer::Stub::Initialize));
  LetIn(job, job.data, push, Unary(&v1::ParameterServer::Stub::Push));
  LetIn(job, job.data, push, Unary(&v1::ParameterServer::Stub::PushPull));
  v1::PullRequest pull;
  *pull.mutable_header() = header;
  LetIn(job, job.data, pull, Unary(&v1::ParameterServer::Stub::Pull));
  v1::RequestFrame frame;
  v1::StreamRequest& request = *frame.add_requests();
  request.set_id(1);
  request.set_method(v1::EXCHANGE_METHOD_PULL);
  *request.mutable_header() = header;
  LetIn(job, job.data, frame, Stream);
  CHECK(job.Exchanges());
}

TEST_CASE("absurd requests to the coordinator are refused, and the job stays as it was") {
  Job job;
  REQUIRE(job.Exchanges());
  const std::span coordinator(&job.coordinator, 1);
  v1::DrainServerRequest drain;
  drain.set_job(job.lives[0].job_id());
  drain.set_index(1);
  drain.set_nonce(4711);
  CHECK(LetIn(job, coordinator, drain, Unary(&v1::Coordinator::Stub::DrainServer)) == "");
  v1::ResizeServersRequest resize;
  resize.set_servers(kServers);
  CHECK(LetIn(job, coordinator, resize, Unary(&v1::Coordinator::Stub::ResizeServers)) == "");
  v1::ProbeLinkRequest probe;
  probe.set_payload("1234");
  LetIn(job, coordinator, probe, Unary(&v1::Coordinator::Stub::ProbeLink));
  v1::LoadWorkerStateRequest load;
  load.set_job(job.lives[0].job_id());
  load.set_incarnation(job.lives[0].incarnation());
  LetIn(job, coordinator, load, [](auto& stub, auto* context, const auto& request) {
    const auto chunks = stub.LoadWorkerState(context, request);
    for (v1::WorkerStateChunk chunk; chunks->Read(&chunk);) {
    }
    return chunks->Finish();
  });
  v1::WorkerStateChunk state;
  state.set_job(load.job());
  state.set_incarnation(load.incarnation());
  state.set_generation(job.lives[0].generation());
  state.set_data("1234");
  state.set_size(4);
  LetIn(job, coordinator, state, [](auto& stub, auto* context, const auto& chunk) {
    v1::SaveWorkerStateReply reply;
    const auto chunks = stub.SaveWorkerState(context, &reply);
    chunks->Write(chunk);
    chunks->WritesDone();
    return chunks->Finish();
  });
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
