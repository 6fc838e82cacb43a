#include "launcher/report/axis.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace leeway {
namespace {

// The largest value on an axis. Diverged losses may be larger, but with larger values the ends of
// the axis and its ticks would overflow.
constexpr double kLargest = 1e300;
constexpr double kDecadesMax = 8;

double Drawable(double value) { return std::clamp(value, -kLargest, kLargest); }

// Returns the step of 1, 2 or 5 times a power of ten that gives about `ticks` ticks.
double NiceStep(double span, int ticks) {
  const double raw = span / ticks;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power * 1.0001) return factor * power;
  }
  return 10 * power;
}

}  // namespace

Axis::Axis(bool logarithmic, double low, double high, double start, double end)
    : logarithmic_(logarithmic),
      low_(logarithmic ? std::log10(low) : low),
      high_(logarithmic ? std::log10(high) : high),
      start_(start),
      end_(end) {}

double Axis::operator()(double value) const {
  const double at = logarithmic_ ? std::log10(std::max(value, 1e-300)) : value;
  return start_ + std::clamp((at - low_) / (high_ - low_), 0.0, 1.0) * (end_ - start_);
}

void Axis::AddTick(double value) {
  ticks_.push_back({(*this)(value), absl::StrFormat("%.4g", value)});
}

void Axis::AddLinearTicks(double step) {
  const double slack = step * 1e-6;
  for (double i = std::ceil((low_ - slack) / step); i * step <= high_ + slack; ++i) {
    AddTick(i == 0 ? 0 : i * step);
  }
}

Axis Axis::Linear(double low, double high, double start, double end, int ticks) {
  low = Drawable(low);
  high = Drawable(high);
  if (!(high > low)) high = low + std::max(1e-6, std::abs(low) * 0.1);
  const double step = NiceStep(high - low, ticks);
  Axis axis(false, std::floor(low / step + 1e-6) * step, std::ceil(high / step - 1e-6) * step,
            start, end);
  axis.AddLinearTicks(step);
  return axis;
}

Axis Axis::Exact(double low, double high, double start, double end, int ticks) {
  low = Drawable(low);
  high = Drawable(high);
  if (!(high > low)) high = low + 1;
  Axis axis(false, low, high, start, end);
  axis.AddLinearTicks(NiceStep(high - low, ticks));
  return axis;
}

Axis Axis::Logarithmic(double low, double high, double start, double end) {
  low = std::clamp(low, 1 / kLargest, kLargest / 2);
  Axis axis(true, low, std::max(Drawable(high), low * 1.1), start, end);
  // With many powers of ten only some get a tick, so that labels do not overlap.
  const double stride = std::max(1.0, std::ceil((axis.high_ - axis.low_) / kDecadesMax));
  for (double power = std::floor(axis.low_ / stride) * stride; power <= axis.high_;
       power += stride) {
    for (double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10, power);
      const double at = std::log10(value);
      if (factor > 1 && stride > 1) continue;
      if (at >= axis.low_ - 1e-9 && at <= axis.high_ + 1e-9) axis.AddTick(value);
    }
  }
  return axis;
}

}  // namespace leeway
