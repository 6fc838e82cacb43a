#include "server/coordinator/core/arrival_history.h"

#include <algorithm>
#include <utility>

namespace leeway {
namespace {

constexpr double kToStandardDeviation = 1.4826;

// Returns the median; the lower one of the two middle values if their number is even. Reorders
// `values`, which must not be empty.
Duration Median(std::vector<Duration>& values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<Duration> Thinned(std::vector<Duration> sorted, size_t size) {
  std::vector<Duration> kept;
  for (size_t i = 0; i < size; ++i) kept.push_back(sorted[i * (sorted.size() - 1) / (size - 1)]);
  return kept;
}

}  // namespace

void ArrivalHistory::Add(std::vector<Duration> delays) {
  if (delays.empty()) return;
  if (delays.size() > kDelaysMax) {
    std::sort(delays.begin(), delays.end());
    delays = Thinned(std::move(delays), kDelaysMax);
  }
  clocks_.push_back(std::move(delays));
  if (clocks_.size() > kClocksMax) clocks_.pop_front();
}

std::optional<ArrivalHistory::Usual> ArrivalHistory::Get() const {
  if (clocks_.size() < kClocksMin) return std::nullopt;
  std::vector<Duration> all;
  for (const std::vector<Duration>& delays : clocks_) {
    all.insert(all.end(), delays.begin(), delays.end());
  }
  Usual usual;
  usual.median = Median(all);
  for (Duration& delay : all) delay = std::max(delay - usual.median, usual.median - delay);
  const auto deviation = static_cast<double>(Median(all).count());
  usual.deviation = Duration(static_cast<Duration::rep>(kToStandardDeviation * deviation));
  return usual;
}

}  // namespace leeway
