// What the loss of a batch has come to.
#pragma once

#include <array>

#include "worker/compute/backend.h"

namespace leeway {

struct BatchLoss {
  // By the examples' labels, and by the other labels of a batch that is mixed; else anything.
  std::array<LossSum, 2> sums;
  // What the first counts; the second counts the rest.
  float share = 1;

  double total() const {
    return share == 1 ? sums[0].loss : share * sums[0].loss + (1 - share) * sums[1].loss;
  }
};

}  // namespace leeway
