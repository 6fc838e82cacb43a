// Rounds of several subjects in turn, so that a machine that is slower for a while is slower for
// all.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/base/transfer.h"
#include "bench/bench_pair.h"

namespace leeway {

struct RoundOptions {
  // Each subject's; one more, shorter, goes first to warm up and is not counted.
  uint32_t rounds = 5;
  double seconds = 0.3;
};

// By subject, then by round. Every second round goes through the subjects backwards.
absl::StatusOr<std::vector<std::vector<TransferRound>>> RunInterleaved(
    const std::vector<BenchPair*>& subjects, const RoundOptions& options);

// One subject's rounds in figures; medians over the rounds.
struct TransferFigures {
  double messages_per_second = 0;
  // 1e9 bytes, all directions added.
  double gigabytes_per_second = 0;
  // Of processor time, client and server added.
  double cpu_seconds_per_gigabyte = 0;
  // Seconds of a call; absent where calls were not timed.
  std::optional<Percentiles> latency;
  // Every round's.
  std::vector<double> rates;
  std::vector<double> cpu;
};
TransferFigures FiguresOf(const std::vector<TransferRound>& rounds, uint64_t bytes_a_message);

}  // namespace leeway
