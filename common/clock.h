// Time is passed in, so that tests need not wait for it.
#pragma once

#include <chrono>

namespace leeway {

using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

inline double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
inline Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace leeway
