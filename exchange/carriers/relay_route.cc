#include "exchange/carriers/relay_route.h"

namespace leeway {
namespace {

// Both functions number the workers from the root on: the root is 0.
RelayRoute RingRoute(uint32_t workers, uint32_t place) {
  RelayRoute route;
  const uint32_t before = (place + workers - 1) % workers;
  if (place != 1 && workers > 1) route.sums_from.push_back(before);
  if (place != 0) route.weights_from = before;
  route.passes_weights_on = place + 1 < workers;
  return route;
}

// The parent of a worker has the same number without its lowest set bit.
RelayRoute TreeRoute(uint32_t workers, uint32_t place) {
  RelayRoute route;
  const uint32_t lowest = place & (~place + 1);
  for (uint32_t bit = 1; (place == 0 || bit < lowest) && place + bit < workers; bit *= 2) {
    route.sums_from.push_back(place + bit);
  }
  if (place != 0) route.weights_from = place - lowest;
  route.passes_weights_on = !route.sums_from.empty();
  return route;
}

}  // namespace

RelayRoute RouteOf(v1::AllReduceAlgorithm algorithm, uint32_t workers, uint32_t root,
                   uint32_t rank) {
  const uint32_t place = (rank + workers - root) % workers;
  RelayRoute route = algorithm == v1::ALL_REDUCE_ALGORITHM_TREE ? TreeRoute(workers, place)
                                                                : RingRoute(workers, place);
  const auto rank_of = [&](uint32_t each) { return (each + root) % workers; };
  for (uint32_t& each : route.sums_from) each = rank_of(each);
  if (route.weights_from) route.weights_from = rank_of(*route.weights_from);
  return route;
}

}  // namespace leeway
