// Loss and accuracy over the run, as a picture that stands alone.
#pragma once

#include <string>

#include "server/outcome/history.h"

namespace leeway {

// An SVG of the training loss (mean of the workers, and each), the test loss, and below them the
// test accuracy if there is any, over epochs. Readable on light and dark ground; draws an empty
// frame with a word where the history has no points.
std::string CurvesSvg(const RunHistory& history, const std::string& title);

// A point of a curve.
struct CurvePoint {
  double x = 0;
  double y = 0;
};
// The training loss of one rank, or of all, as the mean over the examples in each of `bins` equal
// parts of the epochs: smooth, and without the lag of a moving average.
std::vector<CurvePoint> BinnedLoss(const RunHistory& history, std::optional<uint32_t> rank,
                                   int bins);

}  // namespace leeway
