// Who mixes with whom in a gossip job (topology.type: gossip). The functions are pure: all workers
// compute the same graph, so nobody has to announce it.
#pragma once

#include <cstdint>
#include <vector>

#include "leeway/v1/job.pb.h"

namespace leeway {

// A worker whose weights count in another worker's mean, and its share of that mean.
struct Neighbour {
  uint32_t rank = 0;
  double weight = 0;
};

// Returns whose weights worker `rank` averages at `clock` in sync mode, by rising rank, with `rank`
// itself. The weights of all workers are a doubly stochastic matrix, so the mean of all weights
// stays. It is symmetric for `ring` and `random`. `rank` is below `workers`.
// - ring: the ranks before and after it, 1/3 each with its own (D-PSGD: Lian et al. 2017,
//   arXiv:1705.09056). With two workers 1/2 each.
// - exponential: the rank 2^(clock mod ceil(log2 workers)) before it, 1/2 each (SGP: Assran et al.
//   2019, arXiv:1811.10792).
// - random: the members of its group, equally (Moshpit SGD: Ryabinin et al. 2021,
//   arXiv:2103.03239). The draw distributes the workers to ceil(workers / group) groups, whose
//   sizes differ by at most 1.
std::vector<Neighbour> NeighboursOf(const v1::Gossip& gossip, uint64_t seed, uint64_t clock,
                                    uint32_t rank, uint32_t workers);

// Returns whom worker `rank` meets at its own clock `clock` in async mode: any other rank, with the
// same probability (AD-PSGD: Lian et al. 2018, arXiv:1710.06952). Each `attempt` is a new draw.
// `workers` is at least 2.
uint32_t PartnerOf(uint64_t seed, uint64_t clock, uint32_t rank, uint32_t workers,
                   uint32_t attempt);

// Returns the factor lambda by which a clock of sync mode shrinks the distance of all weights from
// their mean (the root of the sum of squares), if nobody computes a step. It is 0 if the distance
// is gone within ceil(log2 workers) clocks.
// - ring: the largest possible factor.
// - exponential: the largest possible factor of ceil(log2 workers) clocks, as that of one clock.
// - random: the root of the expected square.
double ContractionOf(const v1::Gossip& gossip, uint32_t workers);
// Returns the same for async mode, where a clock has as many meetings as there are workers: the
// root of the expected square for meetings of random pairs (Boyd et al. 2006). It is less if each
// worker meets another exactly once.
double MeetingContraction(uint32_t workers);

}  // namespace leeway
