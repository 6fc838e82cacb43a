// A whole job in one process: servers and workers in threads, over real gRPC, so that a test can
// put faults between them.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/files/sha256.h"
#include "config/job.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/restore.h"
#include "server/node/server_process.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"
#include "worker/worker.h"

namespace leeway::testing {

// The results of a job.
struct JobResult {
  std::vector<absl::Status> servers;
  std::vector<ByteBudget::Load> loads;
  std::vector<WorkerEnd> workers;
  // The digest of the final weights; empty without a checkpoint.
  std::string sha256;
  std::vector<float> weights;
  // The clock of the newest checkpoint.
  uint64_t clock = 0;
};

class JobRig {
 public:
  explicit JobRig(const v1::TrainingJob& job) : job_(job) {}
  // This also ends a test that has failed: the servers end at once, and the workers lose them.
  virtual ~JobRig() {
    for (auto& [index, server] : servers_) EndServer(server);
    for (Life& life : lives_) life.thread.join();
  }
  JobRig(const JobRig&) = delete;
  JobRig& operator=(const JobRig&) = delete;

  // The transport of every worker's data plane; null: gRPC.
  TransportFactory transport;
  // Makes the backend that the worker of a rank computes on; null: the job decides.
  std::function<absl::StatusOr<std::unique_ptr<Backend>>(uint32_t rank)> make_backend;
  // Runs one life of a worker.
  std::function<WorkerEnd(const WorkerOptions&)> run_worker = RunWorker;

  // Returns a key: workers of a rank's host with the same key may combine their contributions.
  // Null: all of them may.
  std::function<std::string(uint32_t rank)> memory_host;

  // What every server listens on.
  std::string listen = ServerOptions().listen;
  // Returns where others reach a server; null: where it listens. `on_listening` is told that
  // address.
  std::function<std::string(uint32_t index)> reached_at;
  std::function<void(uint32_t index, const std::string& address)> on_listening;
  // Called once the workers have begun to come.
  std::function<void(const std::string& coordinator)> meanwhile;

  // Continues from that job's newest checkpoint.
  void Resume(const JobRig& before) {
    folder_ = before.folder_;
    resume_ = true;
  }

  // Starts the servers, and returns the coordinator's address.
  std::string StartServers() {
    for (uint32_t index = 0; index < job_.servers().count(); ++index) StartServer(index);
    return servers_[0].process->address();
  }

  // Runs the workers to their ends, and then the servers to theirs. Returns the results.
  JobResult Finish() {
    for (uint32_t rank = 0; rank < job_.workers().count(); ++rank) StartWorker(rank);
    if (meanwhile) meanwhile(servers_[0].process->address());
    for (Life& life : lives_) life.thread.join();
    for (auto& [index, server] : servers_) {
      if (server.process != nullptr) server.thread.join();
    }
    result_.workers.resize(job_.workers().count());
    // The newest life of a rank comes last.
    for (Life& life : lives_) result_.workers[life.rank] = std::move(life.end);
    lives_.clear();
    for (auto& [index, server] : servers_) {
      if (server.process == nullptr) continue;
      result_.servers.push_back(server.end.status);
      result_.loads.push_back(server.process->load());
    }
    ReadWeights();
    return result_;
  }

  JobResult Run() {
    StartServers();
    return Finish();
  }

  // The run folder.
  virtual const std::string& folder() const { return folder_->path(); }

 protected:
  // An index among the servers, and the process there; null: there is no process.
  struct Server {
    std::unique_ptr<ServerProcess> process;
    std::thread thread;
    ServerEnd end;
  };
  struct Life {
    uint32_t rank = 0;
    std::thread thread;
    WorkerEnd end;
  };

  virtual ServerOptions OptionsOfServer(uint32_t index) {
    ServerOptions options;
    options.index = index;
    options.listen = listen;
    options.job = job_;
    options.run_dir = folder();
    options.resume = resume_ && index == 0;
    if (reached_at) options.advertise = reached_at(index);
    if (index > 0) options.coordinator = CoordinatorAddress();
    return options;
  }
  virtual WorkerOptions OptionsOfWorker(uint32_t rank) {
    WorkerOptions options;
    options.coordinator = CoordinatorAddress();
    options.rank = rank;
    options.data_dir = std::string(LEEWAY_SOURCE_DIR) + "/data";
    options.nonce = ++nonces_;
    options.transport = transport;
    if (memory_host) options.memory_host = memory_host(rank);
    if (make_backend) {
      options.make_backend = [this, rank](const v1::Workers&, uint32_t) {
        return make_backend(rank);
      };
    }
    return options;
  }

  void StartServer(uint32_t index) {
    auto started = ServerProcess::Start(OptionsOfServer(index));
    INFO(started.status().ToString());
    REQUIRE(started.ok());
    Server& server = servers_[index];
    EndServer(server);
    server.process = std::move(*started);
    if (on_listening) on_listening(index, server.process->address());
    server.thread = std::thread([&server] { server.end = server.process->Run(); });
  }
  static void EndServer(Server& server) {
    if (server.thread.joinable()) {
      server.process->Leave();
      server.thread.join();
    }
    server.process.reset();
  }
  void StartWorker(uint32_t rank) {
    Life& life = lives_.emplace_back();
    life.rank = rank;
    life.thread = std::thread(
        [this, &life, options = OptionsOfWorker(rank)] { life.end = run_worker(options); });
  }

  std::string CoordinatorAddress() const {
    return reached_at ? reached_at(0) : servers_.at(0).process->address();
  }

  const v1::TrainingJob job_;
  std::map<uint32_t, Server> servers_;
  // In the order in which they began.
  std::list<Life> lives_;

 private:
  void ReadWeights() {
    auto search = FindNewestCheckpoint(folder());
    REQUIRE(search.ok());
    if (!search->newest.has_value()) return;
    auto reader = CheckpointReader::Open(search->newest->folder);
    REQUIRE(reader.ok());
    auto weights = reader->ReadAll("weights");
    REQUIRE(weights.ok());
    result_.clock = search->newest->manifest.clock();
    result_.sha256 = WeightsSha256(weights->span());
    result_.weights.assign(weights->span().begin(), weights->span().end());
  }

  std::shared_ptr<TempFolder> folder_ = std::make_shared<TempFolder>();
  bool resume_ = false;
  uint64_t nonces_ = 0;
  JobResult result_;
};

// Runs the job, whose servers and workers must all finish and leave weights.
inline JobResult MustTrain(JobRig& rig) {
  JobResult result = rig.Run();
  for (const auto& server : result.servers) {
    INFO(server.ToString());
    CHECK(server.ok());
  }
  for (const auto& worker : result.workers) {
    INFO(worker.status.ToString());
    CHECK(worker.exit == WorkerExit::kDone);
  }
  REQUIRE_FALSE(result.sha256.empty());
  return result;
}

inline v1::TrainingJob DigitsJob(std::vector<std::string> sets = {}) {
  auto job = LoadJob(std::string(LEEWAY_SOURCE_DIR) + "/tests/whole/digits.yaml",
                     {.sets = std::move(sets), .environment = {}});
  INFO(job.status().message());
  REQUIRE(job.ok());
  return *job;
}

}  // namespace leeway::testing
