// The coordinator over gRPC, with fake servers that only answer what they are told to answer.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>

#include "common/mutex.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "common/service/server_queue.h"
#include "server/coordinator/coordinator_host.h"
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"
#include "tests/temp_folder.h"

namespace leeway::testing {

inline constexpr auto kLimit = std::chrono::seconds(30);

// Records what it is told.
class FakeServer final : public v1::ShardControl::CallbackService {
 public:
  FakeServer() {
    grpc::ServerBuilder builder;
    PrepareServer({.address = "127.0.0.1:0"}, builder, &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::vector<std::string> told() {
    MutexLock lock(mutex_);
    return told_;
  }
  // Waits until the server was told this.
  bool WaitFor(const std::string& what) {
    const Time deadline = std::chrono::steady_clock::now() + kLimit;
    MutexLock lock(mutex_);
    while (std::find(told_.begin(), told_.end(), what) == told_.end()) {
      if (!changed_.WaitUntil(mutex_, deadline)) return false;
    }
    return true;
  }

  grpc::ServerUnaryReactor* Configure(grpc::CallbackServerContext* context,
                                      const v1::ConfigureRequest* request,
                                      v1::ConfigureReply*) override {
    // The first attempt fails, as if the server were not up yet.
    const bool first = Note("configure " + std::to_string(request->block_elements())) == 1;
    return Done(context,
                first ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "not yet") : grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* SetLive(grpc::CallbackServerContext* context,
                                    const v1::SetLiveRequest* request, v1::SetLiveReply*) override {
    Note(std::string(request->live() ? "live " : "lost ") + std::to_string(request->rank()));
    return Done(context);
  }
  grpc::ServerUnaryReactor* Save(grpc::CallbackServerContext* context,
                                 const v1::SaveRequest* request, v1::SavedShard* reply) override {
    Note("save " + std::to_string(request->clock()));
    *reply = TestFile("shard");
    return Done(context);
  }
  grpc::ServerUnaryReactor* Shutdown(grpc::CallbackServerContext* context,
                                     const v1::ShutdownRequest*, v1::ShutdownReply*) override {
    Note("shutdown");
    return Done(context);
  }

 private:
  static grpc::ServerUnaryReactor* Done(grpc::CallbackServerContext* context,
                                        const grpc::Status& status = grpc::Status::OK) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(status);
    return reactor;
  }
  size_t Note(const std::string& what) {
    MutexLock lock(mutex_);
    told_.push_back(what);
    changed_.NotifyAll();
    return told_.size();
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> told_ GUARDED_BY(mutex_);
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Keeps states in memory.
class MemorySink final : public CheckpointSink {
 public:
  absl::StatusOr<std::unique_ptr<StateWriter>> WriteWorkerState(const StateOf& state) override {
    return std::make_unique<Writer>(*this, state.rank);
  }
  absl::StatusOr<std::unique_ptr<StateReader>> ReadWorkerState(uint32_t rank) override {
    MutexLock lock(mutex_);
    if (!states_.count(rank)) return absl::NotFoundError("no state");
    return std::make_unique<Reader>(states_[rank]);
  }
  absl::Status AdoptWorkerState(uint64_t, const std::string&, uint64_t) override {
    return absl::OkStatus();
  }
  absl::Status WriteManifest(const v1::CheckpointManifest& manifest) override {
    MutexLock lock(mutex_);
    manifests_.push_back(manifest);
    return absl::OkStatus();
  }
  absl::Status RemoveOld(const std::function<std::set<uint64_t>()>& spared) override {
    const std::set<uint64_t> folders = spared();
    MutexLock lock(mutex_);
    spared_ = folders;
    return absl::OkStatus();
  }
  absl::Status WriteRecord(const v1::CoordinatorRecord& record) override {
    MutexLock lock(mutex_);
    if (failures_ > 0 && failures_-- > 0) return absl::ResourceExhaustedError("no space left");
    if (before_record_ && records_.empty()) before_record_();
    records_.push_back(record);
    return absl::OkStatus();
  }
  // The next `times` writes of a record fail. `before_record` is called before the first record
  // that is written after that.
  void Fail(int times, std::function<void()> before_record = nullptr) {
    MutexLock lock(mutex_);
    failures_ = times;
    before_record_ = std::move(before_record);
  }
  std::vector<v1::CoordinatorRecord> records() {
    MutexLock lock(mutex_);
    return records_;
  }
  std::vector<v1::CheckpointManifest> manifests() {
    MutexLock lock(mutex_);
    return manifests_;
  }

 private:
  struct Writer final : StateWriter {
    Writer(MemorySink& sink, uint32_t rank) : sink(sink), rank(rank) {}
    absl::Status Append(std::string_view data) override {
      bytes += data;
      return absl::OkStatus();
    }
    absl::StatusOr<v1::SavedShard> Finish() override {
      MutexLock lock(sink.mutex_);
      sink.states_[rank] = bytes;
      return TestFile("worker-" + std::to_string(rank));
    }
    MemorySink& sink;
    uint32_t rank;
    std::string bytes;
  };
  struct Reader final : StateReader {
    explicit Reader(std::string bytes) : left(bytes), total(bytes.size()) {}
    uint64_t clock() const override { return 5; }
    uint64_t size() const override { return total; }
    absl::StatusOr<std::string> Read(size_t bytes_max) override {
      std::string data = left.substr(0, bytes_max);
      left.erase(0, data.size());
      return data;
    }
    std::string left;
    uint64_t total;
  };

  Mutex mutex_;
  std::map<uint32_t, std::string> states_ GUARDED_BY(mutex_);
  std::vector<v1::CheckpointManifest> manifests_ GUARDED_BY(mutex_);
  std::vector<v1::CoordinatorRecord> records_ GUARDED_BY(mutex_);
  std::set<uint64_t> spared_ GUARDED_BY(mutex_);
  int failures_ GUARDED_BY(mutex_) = 0;
  std::function<void()> before_record_ GUARDED_BY(mutex_);
};

// A job with two fake servers, served on a free port.
struct ServedJob {
  explicit ServedJob(const JobShape& shape, double start_seconds = 120) {
    CoordinatorHostOptions options{.core = TestOptions(shape)};
    options.core.run_dir = folder.path();
    options.core.job.mutable_limits()->set_lease_seconds(1);
    options.core.job.mutable_limits()->set_start_seconds(start_seconds);
    auto started = CoordinatorHost::Start(std::move(options), &sink);
    REQUIRE(started.ok());
    host = *std::move(started);
    grpc::ServerBuilder builder;
    int port = 0;
    PrepareServer({.address = "127.0.0.1:0"}, builder, &port);
    host->Register(builder);
    queue = std::make_unique<ServerQueue>(builder);
    server = builder.BuildAndStart();
    REQUIRE(port != 0);
    host->Await(queue.get());
    queue->Start();
    stub = v1::Coordinator::NewStub(MakeChannel("127.0.0.1:" + std::to_string(port)));
    beats = std::thread([this] { KeepServers(); });
  }
  ~ServedJob() {
    {
      MutexLock lock(mutex);
      ending = true;
    }
    changed.NotifyAll();
    beats.join();
    server->Shutdown(std::chrono::system_clock::now());
    queue.reset();
    host.reset();
  }

  // Sends the servers' registrations and heartbeats.
  void KeepServers() {
    for (uint32_t i = 0; i < 2; ++i) {
      v1::RegisterServerRequest request;
      *request.mutable_build() = ThisBuild();
      request.set_index(i);
      request.set_address(fakes[i].address());
      v1::RegisterServerReply reply;
      grpc::ClientContext context;
      stub->RegisterServer(&context, request, &reply);
    }
    MutexLock lock(mutex);
    while (!ending) {
      for (uint32_t i = 0; i < 2; ++i) {
        v1::ServerHeartbeatRequest request;
        request.set_job(kJob);
        request.set_index(i);
        v1::ServerHeartbeatReply reply;
        grpc::ClientContext context;
        stub->ServerHeartbeat(&context, request, &reply);
      }
      changed.WaitUntil(mutex, std::chrono::steady_clock::now() + std::chrono::milliseconds(100));
    }
  }

  absl::StatusOr<v1::RegisterWorkerReply> Register(uint32_t rank, uint32_t pid) {
    const Time deadline = std::chrono::steady_clock::now() + kLimit;
    while (true) {
      v1::RegisterWorkerReply reply;
      grpc::ClientContext context;
      const grpc::Status answer = stub->RegisterWorker(&context, WorkerRequest(rank, pid), &reply);
      const absl::Status status = ResultOf(answer, context);
      if (status.ok()) return reply;
      if (!absl::IsUnavailable(status) || std::chrono::steady_clock::now() > deadline)
        return status;
      std::this_thread::yield();
    }
  }

  absl::Status Leave(uint32_t rank, uint64_t incarnation, uint64_t clock,
                     v1::LeaveReason reason = v1::LEAVE_FINISHED) {
    v1::LeaveRequest request;
    request.set_job(kJob);
    request.set_rank(rank);
    request.set_incarnation(incarnation);
    request.set_clock(clock);
    request.set_reason(reason);
    v1::LeaveReply reply;
    grpc::ClientContext context;
    const grpc::Status status = stub->Leave(&context, request, &reply);
    return ResultOf(status, context);
  }

  absl::Status SaveState(uint32_t rank, uint64_t incarnation, uint64_t size, std::string data) {
    grpc::ClientContext context;
    v1::SaveWorkerStateReply reply;
    auto writer = stub->SaveWorkerState(&context, &reply);
    v1::WorkerStateChunk chunk;
    chunk.set_job(kJob);
    chunk.set_rank(rank);
    chunk.set_incarnation(incarnation);
    chunk.set_clock(5);
    chunk.set_size(size);
    chunk.set_data(data.substr(0, data.size() / 2));
    writer->Write(chunk);
    chunk.Clear();
    chunk.set_data(data.substr(data.size() / 2));
    writer->Write(chunk);
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    return ResultOf(status, context);
  }

  std::vector<std::string> Events() const {
    std::vector<std::string> events;
    std::ifstream file(folder / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) {
      events.push_back(nlohmann::json::parse(line)["event"]);
    }
    return events;
  }

  const TempFolder folder;
  MemorySink sink;
  FakeServer fakes[2];
  std::unique_ptr<CoordinatorHost> host;
  std::unique_ptr<ServerQueue> queue;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<v1::Coordinator::Stub> stub;
  Mutex mutex;
  CondVar changed;
  bool ending = false;
  std::thread beats;
};

}  // namespace leeway::testing
