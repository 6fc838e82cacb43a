// The rank of a label's score among those of all classes.
#pragma once

#include <cstddef>

namespace leeway {

// Returns the number of classes that come before the label's class: those with a higher score, and
// earlier classes with the same score. 0 means that the prediction is the label.
inline size_t ScoreRank(size_t classes, const float* row, size_t label) {
  size_t before = 0;
  for (size_t c = 0; c < classes; ++c) {
    before += row[c] > row[label] || (c < label && row[c] == row[label]);
  }
  return before;
}

}  // namespace leeway
