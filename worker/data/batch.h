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
  // Where examples are mixed (mixer.h): each is `share` of one with its label above, and 1 - share
  // of one with its label here. Else empty.
  std::vector<float> other_labels = {};
  float share = 1;
  // Examples that stand for damaged ones.
  size_t replaced = 0;
};

}  // namespace leeway
