// Computes the memory that a run's pods request, and how many of them stay in a drain. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace leeway {

// Returns a memory limit, such as "640Mi". It is a quarter above the need of the job (`bytes`) and
// of the process itself, rounded up to a multiple of 64 MiB.
std::string ServerMemory(uint64_t bytes);
// Returns the limit in the same way. With a GPU it includes CUDA's libraries.
std::string WorkerMemory(uint64_t bytes, bool on_gpu);
// Returns the number of servers, or of workers that hold blocks, that a drain must leave running. A
// drain may end as many of them as there are further copies of each block. It may always end one,
// because otherwise no node could ever be drained.
uint32_t HoldersThatStay(uint32_t holders, uint32_t replicas);

}  // namespace leeway
