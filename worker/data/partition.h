// Deals the examples out to the workers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace leeway {

// The rows of each worker. The shares are disjoint and together have all rows. They are pure
// functions of the arguments.
using Shares = std::vector<std::vector<uint32_t>>;

// Gives every worker the same number of examples of each class, to within one example. The workers'
// totals also differ by one example at most.
Shares DealStratified(std::span<const float> labels, uint64_t seed, uint32_t workers);

// Gives worker w a share p_w of each class. For each class, p is drawn from Dirichlet(alpha, ...,
// alpha): the smaller alpha is, the fewer workers have examples of the class. Hsu, Qi, Brown 2019
// (arXiv:1909.06335, section 3.1) draw p over the classes for each worker. Here p is drawn over the
// workers for each class, so that every example belongs to exactly one worker. If there are enough
// examples, a worker that would have none gets one from the worker that has most at that time.
Shares DealLabelSkewed(std::span<const float> labels, double alpha, uint64_t seed,
                       uint32_t workers);

}  // namespace leeway
