// `leeway bench exchange`: sync exchanges of whole vectors between the processes of a real job. In
// the same run, bare sockets move the same bytes in the same pattern.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/base/transfer.h"
#include "bench/exchange_figures.h"

namespace leeway {

struct ExchangeBenchOptions {
  uint32_t servers = 1;
  uint32_t workers = 2;
  // The sizes of the models, in parameters.
  std::vector<uint64_t> parameters = {1'000'000, 25'000'000, 100'000'000};
  std::vector<Wire> wires = {Wire::kTcp, Wire::kAuto};
  // The servers' update rule: "sgd" (no slots), "momentum" (one slot) or "adam" (two slots).
  std::string update = "sgd";
  // A name as in job.compression.
  std::string codec = "none";
  // The size of a block. 0 means the job's default.
  uint64_t block_bytes = 0;
  uint32_t rounds = 5;
  // The approximate length of a round. A round has as many clocks as fit into this time, and at
  // least two.
  double seconds = 1;
  // Whether the raw limit is measured, too.
  bool raw = true;
  // The folder that contains leeway-server.
  std::string program_folder;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

// The raw limit with which a result is compared.
struct RawLimit {
  ExchangeFigures raw;
  // Leeway / raw: the medians of the ratios of neighbouring rounds.
  double share = 0;
  double cpu_ratio = 0;
};

struct ExchangeResult {
  uint64_t parameters = 0;
  Wire wire = Wire::kTcp;
  uint64_t block_bytes = 0;
  ExchangeFigures leeway;
  // Set if the raw limit was measured.
  std::optional<RawLimit> limit;
  // The memory of the server with the highest peak: the peak, the part of the peak that is in the
  // workers' shared memory, and the server's memory before it had a model.
  uint64_t server_peak_bytes = 0;
  uint64_t server_peers_bytes = 0;
  uint64_t server_idle_bytes = 0;
  // The upper bound for the peak: the bytes of the server's parameters x (2 + slots) x 1.15, plus
  // the bytes that may be in flight to the server.
  uint64_t server_bound_bytes = 0;
};

// Stops at the first error and returns it. `results` has the results from before the error.
absl::Status BenchExchange(const ExchangeBenchOptions& options,
                           std::vector<ExchangeResult>& results);

}  // namespace leeway
