#include "bench/exchange_figures.h"

#include <algorithm>
#include <cmath>

#include "common/status.h"

namespace leeway {
namespace {

constexpr double kClocksMax = 100'000;

}  // namespace

ExchangeFigures FiguresOf(const std::vector<ExchangeRound>& rounds, double gigabytes) {
  ExchangeFigures figures;
  std::vector<double> steps;
  for (const ExchangeRound& round : rounds) {
    steps.insert(steps.end(), round.step_seconds.begin(), round.step_seconds.end());
    figures.rates.push_back(round.seconds > 0 ? gigabytes / round.seconds : 0);
    figures.cpu.push_back(round.cpu_seconds / gigabytes);
  }
  figures.step_seconds = PercentilesOf(steps);
  figures.gigabytes_per_second = Median(figures.rates);
  figures.cpu_seconds_per_gigabyte = Median(figures.cpu);
  return figures;
}

double ExchangedGigabytes(uint64_t parameters, uint32_t workers, uint64_t clocks) {
  return 1e-9 * 2 * sizeof(float) * static_cast<double>(parameters) * workers *
         static_cast<double>(clocks);
}

absl::StatusOr<uint64_t> WarmUp(ExchangeGroup& group, double seconds) {
  RETURN_IF_ERROR(group.Run(kWarmUpClocks, 0).status());
  ASSIGN_OR_RETURN(const ExchangeRound first, group.Run(kWarmUpClocks, 0));
  const double step = first.seconds / kWarmUpClocks;
  const double fitting = step > 0 ? seconds / step : 2;
  return static_cast<uint64_t>(std::clamp(std::round(fitting), 2.0, kClocksMax));
}

}  // namespace leeway
