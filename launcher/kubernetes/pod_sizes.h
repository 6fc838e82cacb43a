// Computes how much a run's pods request, and how many servers a drain leaves. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace leeway {

// Return memory limits, such as "640Mi". The limit is a quarter more than the job (`bytes`) and the
// process itself need, rounded up to a multiple of 64 MiB.
std::string ServerMemory(uint64_t bytes);
// With a GPU the limit includes CUDA's libraries.
std::string WorkerMemory(uint64_t bytes, bool on_gpu);
// Returns the number of servers that a drain must leave running. A drain may end as many servers as
// each block has further copies, but always at least one, because otherwise no node could ever be
// drained.
uint32_t ServersThatStay(uint32_t servers, uint32_t replicas);

}  // namespace leeway
