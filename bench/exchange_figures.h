// Turns rounds of exchanges into figures.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/base/statistics.h"
#include "bench/exchange_job.h"

namespace leeway {

// The figures of Leeway or of the raw limit.
struct ExchangeFigures {
  Percentiles step_seconds;
  // The bytes of all workers' contributions and weights, divided by the time of the whole steps, in
  // the median round.
  double gigabytes_per_second = 0;
  // Processor time of all processes together.
  double cpu_seconds_per_gigabyte = 0;
  std::vector<double> rates;
  std::vector<double> cpu;
};
// Computes the figures. `gigabytes` is the amount that one round moves.
ExchangeFigures FiguresOf(const std::vector<ExchangeRound>& rounds, double gigabytes);

// Returns how much `clocks` exchanges move, in 1e9 bytes of floats, as the sum over both directions
// and all workers. A codec may send fewer bytes.
double ExchangedGigabytes(uint64_t parameters, uint32_t workers, uint64_t clocks);

inline constexpr uint64_t kWarmUpClocks = 2;
// Runs a few clocks, and returns the number of clocks that take about `seconds`, at least two.
absl::StatusOr<uint64_t> WarmUp(ExchangeGroup& group, double seconds);

}  // namespace leeway
