// The loss of one batch.
#pragma once

#include <array>

#include "worker/compute/backend.h"

namespace leeway {

struct BatchLoss {
  // The losses by the examples' labels, and by the other labels if the batch is mixed (otherwise
  // undefined).
  std::array<LossSum, 2> sums;
  // The weight of the first sum. The second sum has the rest.
  float share = 1;

  double total() const {
    return share == 1 ? sums[0].loss : share * sums[0].loss + (1 - share) * sums[1].loss;
  }
};

}  // namespace leeway
