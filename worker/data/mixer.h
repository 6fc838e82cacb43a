// Mixup: examples that are each mixed with another one of their batch.
#pragma once

#include "common/philox.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/batch.h"

namespace leeway {

// Zhang et al. 2018, arXiv:1710.09412, with one share and one permutation a batch, as in the
// authors' code. Immutable.
class Mixer {
 public:
  explicit Mixer(const v1::Augment& options) : alpha_(options.mixup()) {}

  // x_i = share x_i + (1 - share) x_p(i), where share is drawn from Beta(alpha, alpha) and p is a
  // permutation, by which other_labels are the labels. Nothing to do: without alpha, or of an empty
  // batch.
  void Apply(RandomStream draws, Batch& batch) const;

 private:
  const double alpha_;
};

}  // namespace leeway
