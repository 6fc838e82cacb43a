// A job of two real servers in this process, whose two workers are the test. Server 0 is a whole
// process, and server 1 a node inside of the test's.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/protocol.h"
#include "common/rpc/channel.h"
#include "config/job.h"
#include "leeway/v1/coordinator.grpc.pb.h"
#include "leeway/v1/parameter_server.grpc.pb.h"
#include "server/node/server_node.h"
#include "server/node/server_process.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::control_messages {

constexpr uint32_t kServers = 2;
constexpr uint32_t kWorkers = 2;
constexpr uint64_t kValues = 1000;

inline v1::TrainingJob SmallJob(std::vector<std::string> sets) {
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

inline v1::ModelSchema SmallSchema() {
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

class Job {
 public:
  explicit Job(std::vector<std::string> sets = {},
               const TransportSecurity& security = ProcessSecurity())
      : job_(SmallJob(std::move(sets))), security_(security) {
    ServerOptions first;
    first.security = &security_;
    first.job = job_;
    first.run_dir = folder_.path();
    auto process = ServerProcess::Start(first);
    REQUIRE(process.ok());
    process_ = std::move(*process);
    threads_.emplace_back([this] { process_->Run(); });
    auto second =
        ServerNode::Start({.index = 1, .coordinator = process_->address(), .security = &security_});
    REQUIRE(second.ok());
    node_ = std::move(*second);
    threads_.emplace_back([this] {
      if (node_->Join().ok()) node_outcome_ = node_->WaitUntilOver();
    });
    coordinator = v1::Coordinator::NewStub(MakeChannel(process_->address(), security_));
    // Both ranks are asked for before either is answered.
    std::thread other([this] { Register(1); });
    Register(0);
    other.join();
    for (const std::string& address : lives[0].servers()) {
      control.push_back(v1::ShardControl::NewStub(MakeChannel(address, security_)));
      data.push_back(v1::ParameterServer::NewStub(MakeChannel(address, security_)));
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

  // Drains server 1, waits for its end, and destroys it. Its blocks are then at server 0.
  std::optional<ServerNode::Outcome> Drain() {
    const bool drained = node_->Drain(std::chrono::seconds(60), NodeOptions().pause);
    threads_[1].join();
    threads_.pop_back();
    node_.reset();
    data[1] = v1::ParameterServer::NewStub(MakeChannel(process_->address(), security_));
    return drained ? node_outcome_ : std::nullopt;
  }
  std::string node_address() const { return node_->address(); }

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
  const TransportSecurity& security_;
  TempFolder folder_;
  std::unique_ptr<ServerProcess> process_;
  std::unique_ptr<ServerNode> node_;
  // Set by the node's thread when the node has ended.
  std::optional<ServerNode::Outcome> node_outcome_;
  std::vector<std::thread> threads_;
  uint64_t clock_ = 0;
};

}  // namespace leeway::control_messages
