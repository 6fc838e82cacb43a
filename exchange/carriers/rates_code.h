// A number that stands for the learning-rate factors of a contribution, so that workers which pass
// a sum on can tell whether theirs are the same (relay_carrier.h).
#pragma once

#include <cstdint>
#include <optional>

#include "common/update/rule.h"

namespace leeway {

// Returns the same number for equal rates, on all machines. If all elements have one factor, the
// number is that factor. Otherwise it is a digest.
uint64_t CodeOf(const ContributionRates& rates);

// Returns the rates of `trained` elements for which the code stands. Absent if the code is a
// digest.
std::optional<ContributionRates> RatesOf(uint64_t code, uint64_t trained);

}  // namespace leeway
