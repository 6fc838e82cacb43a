// One axis of a chart: data to pixels, and where the ticks are.
#pragma once

#include <string>
#include <vector>

namespace leeway {

class Axis {
 public:
  struct Tick {
    double position = 0;
    std::string label;
  };

  // From `low` to `high` in data, onto `start` to `end` in pixels (end < start turns it round).
  // Widened to whole ticks, about `ticks` of them at steps of 1, 2 or 5 times a power of ten.
  static Axis Linear(double low, double high, double start, double end, int ticks);
  // As above, not widened.
  static Axis Exact(double low, double high, double start, double end, int ticks);
  // Ticks at 1, 2 and 5 times powers of ten. 0 < low.
  static Axis Logarithmic(double low, double high, double start, double end);

  // Pixels; values outside the axis are moved to its end.
  double operator()(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  Axis(bool logarithmic, double low, double high, double start, double end);
  void AddTick(double value);
  void AddLinearTicks(double step);

  bool logarithmic_;
  // Of the logarithms, if logarithmic.
  double low_, high_;
  double start_, end_;
  std::vector<Tick> ticks_;
};

}  // namespace leeway
