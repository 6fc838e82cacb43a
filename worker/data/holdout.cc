#include "worker/data/holdout.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/job_key.h"
#include "common/philox.h"
#include "common/status.h"

namespace leeway {

std::vector<bool> HeldOut(uint64_t seed, size_t index, size_t count, double share) {
  std::vector<bool> held(count, false);
  if (count == 0 || !(share > 0)) return held;
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  RandomStream draws(seed, RandomPurpose::kHoldout, {index});
  draws.Shuffle(order);
  const double wanted = std::round(std::min(share, 1.0) * static_cast<double>(count));
  order.resize(std::min(static_cast<size_t>(wanted), count - 1));
  for (uint32_t row : order) held[row] = true;
  return held;
}

absl::Status NothingHeldOut(double share) {
  return AtKey(absl::InvalidArgumentError(absl::StrCat(
                   share, " is so small that no training example is held out; raise it")),
               "data.holdout");
}

}  // namespace leeway
