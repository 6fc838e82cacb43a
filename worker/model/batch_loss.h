// The loss of one batch.
#pragma once

#include <array>

#include "worker/compute/backend.h"

namespace leeway {

struct BatchLoss {
  // The sum of the losses by the examples' labels, and the sum by the other labels. The second sum
  // is undefined unless the batch is mixed.
  std::array<LossSum, 2> sums;
  // The weight of the first sum. The weight of the second sum is 1 - share.
  float share = 1;

  double total() const {
    return share == 1 ? sums[0].loss : share * sums[0].loss + (1 - share) * sums[1].loss;
  }
};

}  // namespace leeway
