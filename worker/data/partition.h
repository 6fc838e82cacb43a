// Deals the examples out to the workers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace leeway {

// The rows of each worker: disjoint, all of them together. Pure functions of the arguments.
using Shares = std::vector<std::vector<uint32_t>>;

// Every worker gets the same number of each class, and of all, give or take one.
Shares DealStratified(std::span<const float> labels, uint64_t seed, uint32_t workers);

// Worker w gets a share p_w of each class, p drawn a class from Dirichlet(alpha, ..., alpha): the
// smaller alpha, the fewer workers hold a class. (Hsu, Qi, Brown 2019, arXiv:1909.06335,
// section 3.1, draw p a worker over the classes; drawn a class over the workers every example has
// exactly one owner.) Where that leaves a worker without examples it is given one of the then
// largest share, as long as there are examples enough.
Shares DealLabelSkewed(std::span<const float> labels, double alpha, uint64_t seed,
                       uint32_t workers);

}  // namespace leeway
