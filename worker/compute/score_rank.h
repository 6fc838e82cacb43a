// Where a label's score stands among those of all classes.
#pragma once

#include <cstddef>

namespace leeway {

// How many scores come before the label's: are higher, or equal and of an earlier class. 0: the
// label is what the scores say.
inline size_t ScoreRank(size_t classes, const float* row, size_t label) {
  size_t before = 0;
  for (size_t c = 0; c < classes; ++c) {
    before += row[c] > row[label] || (c < label && row[c] == row[label]);
  }
  return before;
}

}  // namespace leeway
