// `leeway bench exchange`: sync exchanges of whole vectors between real processes of a real job,
// beside the same bytes through bare sockets in the same pattern, in the same run.
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
  // Of the models.
  std::vector<uint64_t> parameters = {1'000'000, 25'000'000, 100'000'000};
  std::vector<Wire> wires = {Wire::kTcp, Wire::kAuto};
  // What the servers keep: "sgd" (no slots), "momentum" (one), "adam" (two).
  std::string update = "sgd";
  // As in job.compression.
  std::string codec = "none";
  // 0: the job's default.
  uint64_t block_bytes = 0;
  uint32_t rounds = 5;
  // Of a round, about: as many clocks as fit, at least two.
  double seconds = 1;
  // Whether the raw limit is measured too.
  bool raw = true;
  // Where leeway-server is.
  std::string program_folder;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

// The raw limit of a result.
struct RawLimit {
  ExchangeFigures raw;
  // Leeway / raw; medians of the ratios of neighbouring rounds.
  double share = 0;
  double cpu_ratio = 0;
};

struct ExchangeResult {
  uint64_t parameters = 0;
  Wire wire = Wire::kTcp;
  uint64_t block_bytes = 0;
  ExchangeFigures leeway;
  // If it was measured.
  std::optional<RawLimit> limit;
  // Of the server with most of it; what of that is the workers' own, mapped from their shared
  // memory; and what it had before it had a model.
  uint64_t server_peak_bytes = 0;
  uint64_t server_peers_bytes = 0;
  uint64_t server_idle_bytes = 0;
  // Its parameters x (2 + slots) x 1.15 + what may be in flight to it.
  uint64_t server_bound_bytes = 0;
};

// After an error `results` has what was measured before it; nothing is measured after it.
absl::Status BenchExchange(const ExchangeBenchOptions& options,
                           std::vector<ExchangeResult>& results);

}  // namespace leeway
