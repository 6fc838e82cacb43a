// A whole job in one process: servers and workers over real gRPC, in threads, so that a test can
// put faults between them.
#pragma once

#include <functional>
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

// What a job left behind.
struct JobResult {
  std::vector<absl::Status> servers;
  std::vector<ByteBudget::Load> loads;
  std::vector<WorkerEnd> workers;
  // Of the final weights; empty if there is no checkpoint.
  std::string sha256;
  std::vector<float> weights;
  // Of the newest checkpoint.
  uint64_t clock = 0;
};

class JobRig {
 public:
  explicit JobRig(const v1::TrainingJob& job) : job_(job) {}

  // The transport of every worker's data plane; null: gRPC.
  TransportFactory transport;
  // What the worker of a rank computes on; null: as the job says.
  std::function<absl::StatusOr<std::unique_ptr<Backend>>(uint32_t rank)> make_backend;

  // Which workers of a rank's host may combine their contributions; null: all.
  std::function<std::string(uint32_t rank)> memory_host;

  // What every server listens on.
  std::string listen = ServerOptions().listen;
  // Where others reach a server; null: where it listens, which `on_listening` hears.
  std::function<std::string(uint32_t index)> reached_at;
  std::function<void(uint32_t index, const std::string& address)> on_listening;
  // Once the workers have begun to come.
  std::function<void(const std::string& coordinator)> meanwhile;

  // Goes on from that job's newest checkpoint.
  void Resume(const JobRig& before) {
    folder_ = before.folder_;
    resume_ = true;
  }

  // Starts the servers; the coordinator's address.
  std::string StartServers() {
    for (uint32_t index = 0; index < job_.servers().count(); ++index) {
      ServerOptions options;
      options.index = index;
      options.listen = listen;
      options.job = job_;
      options.run_dir = folder();
      options.resume = resume_ && index == 0;
      if (reached_at) options.advertise = reached_at(index);
      if (index > 0) options.coordinator = CoordinatorAddress();
      auto server = ServerProcess::Start(options);
      INFO(server.status().ToString());
      REQUIRE(server.ok());
      if (on_listening) on_listening(index, (*server)->address());
      servers_.push_back(std::move(*server));
    }
    result_.servers.resize(servers_.size());
    for (size_t i = 0; i < servers_.size(); ++i) {
      threads_.emplace_back([this, i] { result_.servers[i] = servers_[i]->Run().status; });
    }
    return servers_[0]->address();
  }

  // Runs the workers to their ends, and the servers after them.
  JobResult Finish() {
    const std::string coordinator = CoordinatorAddress();
    result_.workers.resize(job_.workers().count());
    for (uint32_t rank = 0; rank < job_.workers().count(); ++rank) {
      threads_.emplace_back([this, rank, coordinator] {
        WorkerOptions options;
        options.coordinator = coordinator;
        options.rank = rank;
        options.data_dir = std::string(LEEWAY_SOURCE_DIR) + "/data";
        options.nonce = rank + 1;
        options.transport = transport;
        if (memory_host) options.memory_host = memory_host(rank);
        if (make_backend) {
          options.make_backend = [this, rank](const v1::Workers&, uint32_t) {
            return make_backend(rank);
          };
        }
        result_.workers[rank] = RunWorker(options);
      });
    }
    if (meanwhile) meanwhile(servers_[0]->address());
    for (auto& thread : threads_) thread.join();
    for (const auto& server : servers_) result_.loads.push_back(server->load());
    ReadWeights();
    return result_;
  }

  JobResult Run() {
    StartServers();
    return Finish();
  }

  const std::string& folder() const { return folder_->path(); }

 private:
  std::string CoordinatorAddress() const {
    return reached_at ? reached_at(0) : servers_[0]->address();
  }

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

  const v1::TrainingJob job_;
  std::shared_ptr<TempFolder> folder_ = std::make_shared<TempFolder>();
  bool resume_ = false;
  std::vector<std::unique_ptr<ServerProcess>> servers_;
  std::vector<std::thread> threads_;
  JobResult result_;
};

// Every server and worker has done all its work, and there are weights.
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
