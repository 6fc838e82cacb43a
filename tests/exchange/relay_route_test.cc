// The ways of ring and tree (exchange/carriers/relay_route.h).

#include "exchange/carriers/relay_route.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tests/catch.h"

namespace leeway {
namespace {

constexpr v1::AllReduceAlgorithm kRing = v1::ALL_REDUCE_ALGORITHM_RING;
constexpr v1::AllReduceAlgorithm kTree = v1::ALL_REDUCE_ALGORITHM_TREE;

// All routes of a block, by rank.
std::vector<RelayRoute> Routes(v1::AllReduceAlgorithm algorithm, uint32_t workers, uint32_t root) {
  std::vector<RelayRoute> routes;
  for (uint32_t rank = 0; rank < workers; ++rank) {
    routes.push_back(RouteOf(algorithm, workers, root, rank));
  }
  return routes;
}

// The ranks whose contributions are in the sum of `rank`, each as often as it is added.
std::multiset<uint32_t> Summed(const std::vector<RelayRoute>& routes, uint32_t rank) {
  std::multiset<uint32_t> ranks{rank};
  for (const uint32_t each : routes[rank].sums_from) ranks.merge(Summed(routes, each));
  return ranks;
}

// The number of messages that a sum takes to its root, one after the other.
uint32_t Steps(const std::vector<RelayRoute>& routes, uint32_t rank) {
  uint32_t steps = 0;
  for (const uint32_t each : routes[rank].sums_from) {
    steps = std::max(steps, 1 + Steps(routes, each));
  }
  return steps;
}

TEST_CASE("Each contribution is in the root's sum once", "[relay]") {
  for (const auto algorithm : {kRing, kTree}) {
    for (uint32_t workers = 1; workers <= 17; ++workers) {
      for (uint32_t root = 0; root < workers; ++root) {
        const auto routes = Routes(algorithm, workers, root);
        const std::multiset<uint32_t> summed = Summed(routes, root);
        CHECK(summed.size() == workers);
        CHECK(std::set<uint32_t>(summed.begin(), summed.end()).size() == workers);
      }
    }
  }
}

TEST_CASE("The weights come from the root to every worker", "[relay]") {
  for (const auto algorithm : {kRing, kTree}) {
    for (uint32_t workers = 1; workers <= 17; ++workers) {
      for (uint32_t root = 0; root < workers; ++root) {
        const auto routes = Routes(algorithm, workers, root);
        std::vector<bool> asked(workers, false);
        for (uint32_t rank = 0; rank < workers; ++rank) {
          uint32_t at = rank, steps = 0;
          while (routes[at].weights_from && steps++ <= workers) at = *routes[at].weights_from;
          CHECK(at == root);
          if (routes[rank].weights_from) asked[*routes[rank].weights_from] = true;
        }
        for (uint32_t rank = 0; rank < workers; ++rank) {
          CHECK(routes[rank].passes_weights_on == asked[rank]);
        }
      }
    }
  }
}

TEST_CASE("In a ring a worker fetches from the worker before it only", "[relay]") {
  for (uint32_t workers = 2; workers <= 9; ++workers) {
    for (uint32_t root = 0; root < workers; ++root) {
      const auto routes = Routes(kRing, workers, root);
      CHECK(Steps(routes, root) == workers - 1);
      for (uint32_t rank = 0; rank < workers; ++rank) {
        const uint32_t before = (rank + workers - 1) % workers;
        for (const uint32_t each : routes[rank].sums_from) CHECK(each == before);
        CHECK(routes[rank].weights_from.value_or(before) == before);
      }
    }
  }
}

TEST_CASE("A tree takes log2 n steps, and all workers send alike", "[relay]") {
  for (const uint32_t workers : {2U, 3U, 4U, 5U, 8U, 16U}) {
    uint32_t depth = 0;
    while ((1U << depth) < workers) ++depth;
    // The number of blocks that each worker answers for, over all roots.
    std::map<uint32_t, uint32_t> sent;
    for (uint32_t root = 0; root < workers; ++root) {
      const auto routes = Routes(kTree, workers, root);
      CHECK(Steps(routes, root) <= depth);
      for (const RelayRoute& route : routes) {
        for (const uint32_t each : route.sums_from) ++sent[each];
        if (route.weights_from) ++sent[*route.weights_from];
      }
    }
    for (const auto& [rank, count] : sent) CHECK(count == 2 * (workers - 1));
    CHECK(sent.size() == workers);
  }
}

}  // namespace
}  // namespace leeway
