// The coordinator over gRPC, with servers that only answer what they are told.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>

#include "common/channel.h"
#include "common/grpc_status.h"
#include "common/mutex.h"
#include "server/coordinator/coordinator_host.h"
#include "server/rpc/server_queue.h"
#include "tests/catch.h"
#include "tests/server/coordinator/scenario.h"
#include "tests/temp_folder.h"

namespace leeway {
namespace {

constexpr auto kLimit = std::chrono::seconds(30);

// Notes what it is told.
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
  // Until it was told this.
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
  absl::Status WriteRecord(const v1::CoordinatorRecord& record) override {
    MutexLock lock(mutex_);
    if (failures_ > 0 && failures_-- > 0) return absl::ResourceExhaustedError("no space left");
    if (before_record_) before_record_();
    records_.push_back(record);
    return absl::OkStatus();
  }
  // Of records; `before_record` is called when one is written all the same.
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

  // The servers' registrations and heartbeats.
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
      const auto status =
          FromGrpc(stub->RegisterWorker(&context, WorkerRequest(rank, pid), &reply));
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
    return FromGrpc(stub->Leave(&context, request, &reply));
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
    return FromGrpc(writer->Finish());
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

TEST_CASE("a job goes through over gRPC: started, a worker replaced, saved, shut down") {
  ServedJob job({.mode = v1::CONSISTENCY_MODE_BOUNDED, .clocks = 5, .elastic = true});
  absl::StatusOr<v1::RegisterWorkerReply> second;
  std::thread other([&] { second = job.Register(1, 101); });
  const auto first = job.Register(0, 100);
  other.join();
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(first->save_state());
  CHECK(first->servers(1) == job.fakes[1].address());
  CHECK(job.fakes[0].told().size() == 2);  // Configured at the second attempt.

  // Worker 1 falls silent; worker 0 does not.
  std::thread beating([&] {
    while (!job.host->WaitUntilOver(std::chrono::steady_clock::now() + FromSeconds(0.1))) {
      v1::HeartbeatRequest request;
      request.set_job(kJob);
      request.set_incarnation(1);
      v1::StepMetrics* metrics = request.add_steps();
      metrics->set_clock(1);
      v1::HeartbeatReply reply;
      grpc::ClientContext context;
      job.stub->Heartbeat(&context, request, &reply);
    }
  });
  CHECK(job.fakes[1].WaitFor("lost 1"));
  const auto replacement = job.Register(1, 102);
  REQUIRE(replacement.ok());
  CHECK(replacement->incarnation() == 2);
  CHECK(job.fakes[1].WaitFor("live 1"));

  const std::string state(3 << 20, 'x');
  CHECK(absl::IsAborted(job.SaveState(1, 1, 0, state)));
  CHECK(absl::IsDataLoss(job.SaveState(1, 2, state.size() + 1, state)));
  CHECK(absl::IsInvalidArgument(job.Leave(1, 2, 4)));
  for (const uint32_t rank : {0u, 1u}) {
    REQUIRE(job.SaveState(rank, rank + 1, state.size(), state).ok());
    REQUIRE(job.Leave(rank, rank + 1, 5).ok());
  }
  CHECK(job.host->WaitUntilOver() == v1::JOB_FINISHED);
  beating.join();

  REQUIRE(job.sink.manifests().size() == 1);
  CHECK(job.sink.manifests()[0].worker_states_size() == 2);
  for (FakeServer& fake : job.fakes) CHECK(fake.told().back() == "shutdown");
  const std::vector<std::string> events = job.Events();
  CHECK(std::count(events.begin(), events.end(), "step") == 1);
  CHECK(std::count(events.begin(), events.end(), "checkpoint") == 1);
  CHECK(events.back() == "job_finished");

  v1::LoadWorkerStateRequest request;
  request.set_job(kJob);
  request.set_rank(1);
  grpc::ClientContext context;
  auto reader = job.stub->LoadWorkerState(&context, request);
  v1::WorkerStateChunk chunk;
  std::string loaded;
  while (reader->Read(&chunk)) loaded += chunk.data();
  CHECK(reader->Finish().ok());
  CHECK(loaded == state);
}

TEST_CASE("a job that waits is stopped over gRPC, and says what it waits for") {
  ServedJob job({});
  v1::JobStatus status;
  {
    grpc::ClientContext context;
    REQUIRE(job.stub->GetJobStatus(&context, {}, &status).ok());
  }
  CHECK(status.state() == v1::JOB_STARTING);
  CHECK_THAT(status.message(), Catch::Matchers::Contains("waiting for workers 0, 1"));
  v1::StopJobRequest request;
  request.set_reason("enough");
  v1::StopJobReply reply;
  grpc::ClientContext context;
  REQUIRE(job.stub->StopJob(&context, request, &reply).ok());
  CHECK(job.host->WaitUntilOver() == v1::JOB_STOPPED);
}

TEST_CASE("while a record cannot be written nobody is told what follows from it") {
  ServedJob job({});
  size_t told = 0;
  job.sink.Fail(3, [&] {
    for (FakeServer& fake : job.fakes) told += fake.told().size();
  });
  std::thread other([&] { CHECK(job.Register(1, 101).ok()); });
  CHECK(job.Register(0, 100).ok());
  other.join();
  CHECK(told == 0);
  CHECK(job.sink.records().size() == 1);
  for (FakeServer& fake : job.fakes) CHECK(fake.told().size() == 2);
  job.sink.Fail(0);
  job.host->StopJob("enough");
  for (const uint32_t rank : {0u, 1u}) CHECK(job.Leave(rank, 1, 0, v1::LEAVE_STOPPED).ok());
  CHECK(job.host->WaitUntilOver() == v1::JOB_STOPPED);
  const std::vector<std::string> events = job.Events();
  CHECK(std::count(events.begin(), events.end(), "record_failed") == 1);
}

TEST_CASE("a record that can never be written ends the job, and servers hear of the end only") {
  ServedJob job({}, 0.5);
  job.sink.Fail(std::numeric_limits<int>::max());
  for (FakeServer& fake : job.fakes) {
    while (job.host->Status().servers(0).state() == "waiting") std::this_thread::yield();
    CHECK(fake.told().empty());
  }
  job.host->StopJob("enough");
  CHECK(job.host->WaitUntilOver(std::chrono::steady_clock::now() + kLimit).has_value());
  CHECK(job.fakes[0].told() == std::vector<std::string>{"shutdown"});
}

TEST_CASE("servers that cannot be reached do not keep the coordinator") {
  ServedJob job({});
  v1::RegisterServerRequest gone;
  *gone.mutable_build() = ThisBuild();
  gone.set_index(1);
  gone.set_address("127.0.0.1:1");
  v1::RegisterServerReply reply;
  grpc::ClientContext context;
  REQUIRE(job.stub->RegisterServer(&context, gone, &reply).ok());
  job.host->StopJob("enough");
  CHECK(job.host->WaitUntilOver(std::chrono::steady_clock::now() + kLimit) == v1::JOB_STOPPED);
}

}  // namespace
}  // namespace leeway
