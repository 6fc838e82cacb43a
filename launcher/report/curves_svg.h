// Loss and accuracy over the run, as a picture that needs no other file.
#pragma once

#include <string>

#include "server/outcome/history.h"

namespace leeway {

// Draws an SVG over epochs: the training loss (the workers' mean, and each worker's), the test
// loss, and below them the test accuracy if it was measured. It is readable on light and dark
// backgrounds. If the history has no points, it is an empty frame with a short text.
std::string CurvesSvg(const RunHistory& history, const std::string& title);

// A point of a curve.
struct CurvePoint {
  double x = 0;
  double y = 0;
};
// The training loss of one rank, or of all ranks: the mean over the examples in each of `bins`
// equal parts of the epochs. That is smooth, without the lag of a moving average.
std::vector<CurvePoint> BinnedLoss(const RunHistory& history, std::optional<uint32_t> rank,
                                   int bins);

}  // namespace leeway
