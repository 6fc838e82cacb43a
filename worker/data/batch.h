// The examples of one step.
#pragma once

#include <cstddef>
#include <vector>

namespace leeway {

// The number of examples is `size`. It may be 0 if a worker has less data than the others.
struct Batch {
  size_t size = 0;
  // The features of all examples: size x elements of the shape, normalised.
  std::vector<float> features;
  // The labels of all examples: `size` x the number of labels of one example. An example has one
  // label, or one label for each position of a text. A label is a class number, a token, or the
  // target of a regression.
  std::vector<float> labels;
  // The other labels, if examples are mixed (mixer.h); otherwise empty. A mixed example is the sum
  // of two examples: `share` times one with the label in `labels`, and 1 - share times one with the
  // label here.
  std::vector<float> other_labels = {};
  float share = 1;
  // The number of examples that replace damaged ones.
  size_t replaced = 0;
};

}  // namespace leeway
