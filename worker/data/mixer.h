// Mixup, which mixes each example with another example of its batch.
#pragma once

#include "common/philox.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/batch.h"

namespace leeway {

// Implements Zhang et al. 2018, arXiv:1710.09412. Each batch has one share and one permutation, as
// in the authors' code. Immutable.
class Mixer {
 public:
  explicit Mixer(const v1::Augment& options) : alpha_(options.mixup()) {}

  // Computes x_i = share x_i + (1 - share) x_p(i), where `share` is drawn from Beta(alpha, alpha)
  // and p is a permutation. Sets other_labels to the labels in the order of p. Without alpha, or
  // for an empty batch, changes nothing.
  void Apply(RandomStream draws, Batch& batch) const;

 private:
  const double alpha_;
};

}  // namespace leeway
