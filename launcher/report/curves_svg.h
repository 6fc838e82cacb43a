// Draws loss and accuracy over the run, as a picture that needs no other file.
#pragma once

#include <string>

#include "run/history.h"

namespace leeway {

// Draws an SVG over epochs: the training loss (of each worker, and the mean of all workers), the
// test loss, and below them the test accuracy if it was measured. The picture is readable on light
// and dark backgrounds. If the history has no points, the picture is an empty frame with a short
// text.
std::string CurvesSvg(const RunHistory& history, const std::string& title);

struct CurvePoint {
  double x = 0;
  double y = 0;
};
// Returns the curve of the training loss of one rank, or of all ranks. Each point is the mean over
// the examples in one of `bins` equal parts of the epochs. Such a curve is smooth, and does not lag
// as a moving average does.
std::vector<CurvePoint> BinnedLoss(const RunHistory& history, std::optional<uint32_t> rank,
                                   int bins);

}  // namespace leeway
