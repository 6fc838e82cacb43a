#include "common/object_store/retry.h"

#include <algorithm>

namespace leeway {

std::optional<Duration> StoreRetry::PauseAfter(Duration elapsed, std::optional<Duration> asked) {
  ++attempts_;
  const auto drawn = std::chrono::duration_cast<Duration>(bound_.Next() * draws_.Uniform());
  const Duration pause = std::max(drawn, asked.value_or(Duration::zero()));
  if (elapsed + pause >= limits_.total) return std::nullopt;
  return pause;
}

}  // namespace leeway
