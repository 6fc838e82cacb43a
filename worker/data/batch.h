// The examples of one step.
#pragma once

#include <cstddef>
#include <vector>

namespace leeway {

// `size` is the number of examples. It may be 0 where a worker has less data than the others.
struct Batch {
  size_t size = 0;
  // The features of all examples: size x elements of the shape, normalised.
  std::vector<float> features;
  // The labels of all examples: size x the labels of one. An example has one label, or one for each
  // position of a text. A label is a class number, a token, or the target of a regression.
  std::vector<float> labels;
  // Where examples are mixed (mixer.h), each is `share` of an example with the label above, and 1 -
  // share of one with the label here. Otherwise empty.
  std::vector<float> other_labels = {};
  float share = 1;
  // The number of examples that replace damaged ones.
  size_t replaced = 0;
};

}  // namespace leeway
