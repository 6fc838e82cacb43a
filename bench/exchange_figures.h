// Rounds of exchanges in figures.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/base/statistics.h"
#include "bench/exchange_job.h"

namespace leeway {

// One side's steps.
struct ExchangeFigures {
  Percentiles step_seconds;
  // All workers' contributions and weights, over the whole step; the median round.
  double gigabytes_per_second = 0;
  // Of processor time, all processes added.
  double cpu_seconds_per_gigabyte = 0;
  std::vector<double> rates;
  std::vector<double> cpu;
};
// `gigabytes`: of a round.
ExchangeFigures FiguresOf(const std::vector<ExchangeRound>& rounds, double gigabytes);

// Up and down, of all workers; 1e9 bytes of floats, also where a codec sends fewer.
double ExchangedGigabytes(uint64_t parameters, uint32_t workers, uint64_t clocks);

inline constexpr uint64_t kWarmUpClocks = 2;
// Runs a few clocks, and says how many take about `seconds`: two at least.
absl::StatusOr<uint64_t> WarmUp(ExchangeGroup& group, double seconds);

}  // namespace leeway
