// What one step computes on.
#pragma once

#include <cstddef>
#include <vector>

namespace leeway {

// `size` examples; may be 0 where a worker has less data than the others.
struct Batch {
  size_t size = 0;
  // size x elements of the shape, normalised.
  std::vector<float> features;
  // size x the labels of an example, which are one, or one a position of a text: class numbers,
  // tokens, or the target of a regression.
  std::vector<float> labels;
};

}  // namespace leeway
