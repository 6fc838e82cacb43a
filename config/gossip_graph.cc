#include "config/gossip_graph.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/philox.h"

namespace leeway {
namespace {

constexpr double kPi = 3.141592653589793;

// Returns ceil(log2 workers), the number of clocks after which `exponential` repeats itself.
uint32_t PeriodOf(uint32_t workers) { return std::bit_width(workers - 1); }

uint32_t GroupsOf(const v1::Gossip& gossip, uint32_t workers) {
  return (workers + gossip.group() - 1) / gossip.group();
}

// Returns the same weight for each of these ranks, by rising rank.
std::vector<Neighbour> Equally(std::vector<uint32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::vector<Neighbour> neighbours;
  for (const uint32_t rank : ranks) neighbours.push_back({rank, 1.0 / ranks.size()});
  return neighbours;
}

std::vector<uint32_t> RingOf(uint32_t rank, uint32_t workers) {
  const uint32_t next = (rank + 1) % workers;
  if (workers == 2) return {rank, next};
  return {(rank + workers - 1) % workers, rank, next};
}

uint32_t RankBefore(uint64_t clock, uint32_t rank, uint32_t workers) {
  const uint32_t distance = 1u << clock % PeriodOf(workers);
  return (rank + workers - distance) % workers;
}

std::vector<uint32_t> GroupOf(const v1::Gossip& gossip, uint64_t seed, uint64_t clock,
                              uint32_t rank, uint32_t workers) {
  std::vector<uint32_t> drawn(workers);
  std::iota(drawn.begin(), drawn.end(), 0);
  RandomStream(seed, RandomPurpose::kGroups, {clock}).Shuffle(drawn);
  const uint64_t groups = GroupsOf(gossip, workers);
  const auto begin_of = [&](uint64_t group) { return drawn.begin() + group * workers / groups; };
  const auto place = std::find(drawn.begin(), drawn.end(), rank);
  uint64_t group = 0;
  while (begin_of(group + 1) <= place) ++group;
  return {begin_of(group), begin_of(group + 1)};
}

// Returns the largest factor of one period of `exponential`. The matrices of its clocks are
// circulant, so their product has the eigenvalues prod_j (1 + w^(k 2^j)) / 2 for w = e^(-2 pi i /
// n). Their absolute values are prod_j |cos(pi k 2^j / n)|.
double PeriodContraction(uint32_t workers) {
  if (std::has_single_bit(workers)) return 0;
  double most = 0;
  for (uint32_t k = 1; k <= workers / 2; ++k) {
    double factor = 1;
    for (uint32_t j = 0; j < PeriodOf(workers); ++j) {
      factor *= std::abs(std::cos(kPi * (uint64_t{k} << j) / workers));
    }
    most = std::max(most, factor);
  }
  return most;
}

}  // namespace

std::vector<Neighbour> NeighboursOf(const v1::Gossip& gossip, uint64_t seed, uint64_t clock,
                                    uint32_t rank, uint32_t workers) {
  if (workers == 1) return {{rank, 1}};
  switch (gossip.graph()) {
    case v1::GOSSIP_GRAPH_RING:
      return Equally(RingOf(rank, workers));
    case v1::GOSSIP_GRAPH_EXPONENTIAL:
      return Equally({rank, RankBefore(clock, rank, workers)});
    case v1::GOSSIP_GRAPH_RANDOM:
      return Equally(GroupOf(gossip, seed, clock, rank, workers));
  }
  return {{rank, 1}};
}

uint32_t PartnerOf(uint64_t seed, uint64_t clock, uint32_t rank, uint32_t workers,
                   uint32_t attempt) {
  RandomStream draws(seed, RandomPurpose::kPartner, {clock, rank, attempt});
  const auto other = static_cast<uint32_t>(draws.Below(workers - 1));
  return other < rank ? other : other + 1;
}

double ContractionOf(const v1::Gossip& gossip, uint32_t workers) {
  if (workers == 1) return 0;
  const double n = workers;
  switch (gossip.graph()) {
    case v1::GOSSIP_GRAPH_RING:
      return workers == 2 ? 0 : (1 + 2 * std::cos(2 * kPi / n)) / 3;
    case v1::GOSSIP_GRAPH_EXPONENTIAL:
      return std::pow(PeriodContraction(workers), 1.0 / PeriodOf(workers));
    case v1::GOSSIP_GRAPH_RANDOM:
      return std::sqrt((GroupsOf(gossip, workers) - 1) / (n - 1));
  }
  return 1;
}

double MeetingContraction(uint32_t workers) {
  if (workers <= 2) return 0;
  const double n = workers;
  return std::sqrt(std::pow(1 - 1 / (n - 1), n));
}

}  // namespace leeway
