// A job of real processes whose workers only exchange: real servers, and workers of the benchmark's
// own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/base/bench_process.h"
#include "bench/base/real_servers.h"
#include "bench/base/transfer.h"
#include "bench/raw/raw_exchange.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// The step times of all workers, and the time that the slowest worker took for all its steps.
struct ExchangeRound {
  std::vector<double> step_seconds;
  double seconds = 0;
  double cpu_seconds = 0;
};

// A group of processes that exchange on request. They end when this object is destroyed. Not
// thread-safe.
class ExchangeGroup {
 public:
  virtual ~ExchangeGroup() = default;
  // Runs `clocks` exchanges. They should take about `seconds`, which sets the time limit.
  virtual absl::StatusOr<ExchangeRound> Run(uint64_t clocks, double seconds) = 0;
};

struct ExchangeJobSpec {
  std::string program_folder;
  // The YAML of a job with this number of servers and workers.
  std::string yaml;
  uint32_t servers = 1;
  uint32_t workers = 1;
  // The model that the workers register. It need not be the model in the job.
  v1::ModelSchema schema;
};

// Returns the schema of a flat vector.
v1::ModelSchema VectorSchema(uint64_t parameters);

// The processes of a Leeway job.
class ExchangeJob : public ExchangeGroup {
 public:
  static absl::StatusOr<std::unique_ptr<ExchangeJob>> Start(const ExchangeJobSpec& spec);

  absl::StatusOr<ExchangeRound> Run(uint64_t clocks, double seconds) override;
  // The memory of the server with the highest peak.
  struct ServerMemory {
    uint64_t peak_bytes = 0;
    // The part of the peak that is in the workers' shared memory.
    uint64_t peers_bytes = 0;
    // The memory before the server had a model.
    uint64_t idle_bytes = 0;
  };
  ServerMemory server_memory() const;
  // Returns the size of a block, which is known after the first round.
  uint64_t block_bytes() const { return block_bytes_; }

 private:
  ExchangeJob() = default;
  absl::Status StartWorkers(const ExchangeJobSpec& spec);

  uint64_t block_bytes_ = 0;
  // The memory of each server before it had a model, by server.
  std::vector<uint64_t> idle_bytes_;
  // Declared last, so that the workers are destroyed first.
  std::unique_ptr<RealServers> servers_;
  std::vector<std::unique_ptr<BenchProcess>> workers_;
};

// Moves the same bytes on bare sockets: unix sockets for the transport unix, otherwise TCP sockets.
class RawExchangeGroup : public ExchangeGroup {
 public:
  static absl::StatusOr<std::unique_ptr<RawExchangeGroup>> Start(const RawExchangePlan& plan,
                                                                 Wire wire, uint32_t workers);

  absl::StatusOr<ExchangeRound> Run(uint64_t clocks, double seconds) override;
  // Returns the servers by index.
  const std::vector<std::unique_ptr<BenchProcess>>& servers() const { return servers_; }

 private:
  std::vector<std::unique_ptr<BenchProcess>> servers_;
  std::vector<std::unique_ptr<BenchProcess>> workers_;
};

}  // namespace leeway
