// One axis of a chart: maps data to pixels, and places the ticks.
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

  // Makes an axis that maps data from `low` to `high` to pixels from `start` to `end`. If end <
  // start, the axis is reversed. The range is widened to whole ticks. There are about `ticks`
  // ticks, at steps of 1, 2 or 5 times a power of ten.
  static Axis Linear(double low, double high, double start, double end, int ticks);
  // Does the same as Linear, but does not widen the range.
  static Axis Exact(double low, double high, double start, double end, int ticks);
  // Makes a logarithmic axis with ticks at 1, 2 and 5 times powers of ten. `low` must be above 0.
  static Axis Logarithmic(double low, double high, double start, double end);

  // Returns the pixel of a value. A value outside the axis maps to the nearer end.
  double operator()(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  Axis(bool logarithmic, double low, double high, double start, double end);
  void AddTick(double value);
  void AddLinearTicks(double step);

  bool logarithmic_;
  // The ends of the data range. For a logarithmic axis these are logarithms.
  double low_, high_;
  double start_, end_;
  std::vector<Tick> ticks_;
};

}  // namespace leeway
