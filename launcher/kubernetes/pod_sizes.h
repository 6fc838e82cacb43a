// Computes the memory that a run's pods request, and how many servers stay in a drain. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace leeway {

// Returns a memory limit, such as "640Mi". It is a quarter above the need of the job (`bytes`) and
// of the process itself, rounded up to a multiple of 64 MiB.
std::string ServerMemory(uint64_t bytes);
// Returns the limit in the same way. With a GPU it includes CUDA's libraries.
std::string WorkerMemory(uint64_t bytes, bool on_gpu);
// Returns the number of servers that a drain must leave running. A drain may end as many servers as
// there are further copies of each block. It may always end one server, because otherwise no node
// could ever be drained.
uint32_t ServersThatStay(uint32_t servers, uint32_t replicas);

}  // namespace leeway
