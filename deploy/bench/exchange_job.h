// A job of real processes whose workers only exchange: leeway-server processes as the launcher
// starts them, and workers of the benchmark's own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/bench/exchange_bench.h"
#include "deploy/launcher/process.h"

namespace leeway {

// Steps of all workers, and how long the slowest of them took for all.
struct ExchangeRound {
  std::vector<double> step_seconds;
  double seconds = 0;
  double cpu_seconds = 0;
};

// Processes that are told to exchange; all are gone when it is. Not thread-safe.
class ExchangeGroup {
 public:
  virtual ~ExchangeGroup() = default;
  virtual absl::StatusOr<ExchangeRound> Run(uint64_t clocks) = 0;
};

// Leeway's.
class ExchangeJob : public ExchangeGroup {
 public:
  static absl::StatusOr<std::unique_ptr<ExchangeJob>> Start(const ExchangeBenchOptions& options,
                                                            Wire wire, uint64_t parameters);
  ~ExchangeJob() override;

  absl::StatusOr<ExchangeRound> Run(uint64_t clocks) override;
  // Of the server with the highest peak.
  struct ServerMemory {
    uint64_t peak_bytes = 0;
    // Of the peak, what lies in the workers' shared memory.
    uint64_t peers_bytes = 0;
    // Before it had a model.
    uint64_t idle_bytes = 0;
  };
  ServerMemory server_memory() const;
  // Known after a round.
  uint64_t block_bytes() const { return block_bytes_; }

 private:
  ExchangeJob() = default;
  absl::Status StartServers(const ExchangeBenchOptions& options, const std::string& yaml);
  absl::Status StartWorkers(const ExchangeBenchOptions& options, uint64_t parameters);

  std::string folder_;
  std::string coordinator_;
  uint64_t block_bytes_ = 0;
  // By server.
  std::vector<uint64_t> idle_bytes_;
  // The workers go first.
  std::vector<std::unique_ptr<Process>> servers_;
  std::vector<std::unique_ptr<BenchProcess>> workers_;
};

// The same bytes on bare sockets: unix sockets for unix, else TCP.
class RawExchangeGroup : public ExchangeGroup {
 public:
  static absl::StatusOr<std::unique_ptr<RawExchangeGroup>> Start(
      const ExchangeBenchOptions& options, Wire wire, uint64_t parameters, uint64_t block_bytes);

  absl::StatusOr<ExchangeRound> Run(uint64_t clocks) override;

 private:
  std::vector<std::unique_ptr<BenchProcess>> servers_;
  std::vector<std::unique_ptr<BenchProcess>> workers_;
};

// The YAML of the job that is measured.
std::string ExchangeJobYaml(const ExchangeBenchOptions& options, Wire wire);

}  // namespace leeway
