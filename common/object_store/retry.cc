#include "common/object_store/retry.h"

#include <algorithm>

namespace leeway {

std::optional<Duration> StoreRetry::PauseAfter(Duration elapsed, std::optional<Duration> asked) {
  // Beyond that the bound is pause_max in any case.
  constexpr uint32_t kDoublingsMax = 16;
  const Duration bound =
      std::min(limits_.pause_max, limits_.pause_first * (1 << std::min(attempts_, kDoublingsMax)));
  ++attempts_;
  const auto drawn = std::chrono::duration_cast<Duration>(bound * draws_.Uniform());
  const Duration pause = std::max(drawn, asked.value_or(Duration::zero()));
  if (elapsed + pause >= limits_.total) return std::nullopt;
  return pause;
}

}  // namespace leeway
