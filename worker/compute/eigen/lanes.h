// Vectors of at most 8 floats, because a register of x86-64-v3 holds 8. They are for loops with
// comparisons, which compilers do not vectorise.
#pragma once

#include <cstddef>
#include <cstring>

namespace leeway {

template <size_t kWidth>
struct LanesOf {
  typedef float Type __attribute__((vector_size(kWidth * sizeof(float))));
};
// A vector type. Operators work lane by lane. The result of a comparison selects lanes in `mask ? a
// : b`.
template <size_t kWidth>
using Lanes = typename LanesOf<kWidth>::Type;

template <size_t kWidth>
inline Lanes<kWidth> LoadLanes(const float* data) {
  Lanes<kWidth> lanes;
  std::memcpy(&lanes, data, sizeof(lanes));
  return lanes;
}
template <typename LanesType>
inline void StoreLanes(LanesType lanes, float* data) {
  std::memcpy(data, &lanes, sizeof(lanes));
}

// Calls visit.template operator()<width>(first) for groups of lanes that cover [0, count).
template <typename Visit>
void ForLanes(size_t count, Visit visit) {
  size_t first = 0;
  for (; first + 8 <= count; first += 8) visit.template operator()<8>(first);
  for (; first + 4 <= count; first += 4) visit.template operator()<4>(first);
  for (; first + 2 <= count; first += 2) visit.template operator()<2>(first);
  if (first < count) visit.template operator()<1>(first);
}

}  // namespace leeway
