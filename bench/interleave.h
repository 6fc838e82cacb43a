// Runs rounds of several subjects in turn, so that a machine that is slow for a while slows all of
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/base/transfer.h"
#include "bench/bench_pair.h"

namespace leeway {

struct RoundOptions {
  // The number of rounds of each subject, not counting a shorter first round to warm up.
  uint32_t rounds = 5;
  double seconds = 0.3;
};

// Returns the rounds by subject, then by round. Every second round runs the subjects in reverse
// order.
absl::StatusOr<std::vector<std::vector<TransferRound>>> RunInterleaved(
    const std::vector<BenchPair*>& subjects, const RoundOptions& options);

// The figures of one subject: medians over its rounds.
struct TransferFigures {
  double messages_per_second = 0;
  // The rate in 1e9 bytes a second, as the sum of both directions.
  double gigabytes_per_second = 0;
  // Processor time of client and server together.
  double cpu_seconds_per_gigabyte = 0;
  // The seconds that a call took. Absent if calls were not timed.
  std::optional<Percentiles> latency;
  // The values of every round.
  std::vector<double> rates;
  std::vector<double> cpu;
};
TransferFigures FiguresOf(const std::vector<TransferRound>& rounds, uint64_t bytes_a_message);

}  // namespace leeway
