// Deals the examples out to the workers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace leeway {

// The rows of each worker: disjoint, and together all rows. They are pure functions of the
// arguments.
using Shares = std::vector<std::vector<uint32_t>>;

// Every worker gets the same number of examples of each class, and in total, give or take one.
Shares DealStratified(std::span<const float> labels, uint64_t seed, uint32_t workers);

// Worker w gets a share p_w of each class. For each class, p is drawn from Dirichlet(alpha, ...,
// alpha): the smaller alpha is, the fewer workers have a class. Hsu, Qi, Brown 2019
// (arXiv:1909.06335, section 3.1) draw p over the classes for each worker; drawing p over the
// workers for each class gives every example exactly one owner. A worker left without examples gets
// one from the worker that has most at that time, as long as there are enough examples.
Shares DealLabelSkewed(std::span<const float> labels, double alpha, uint64_t seed,
                       uint32_t workers);

}  // namespace leeway
