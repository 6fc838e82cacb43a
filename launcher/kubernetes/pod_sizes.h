// Computes how much a run's pods request, and how many servers a drain leaves. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace leeway {

// Memory limits, such as "640Mi": a quarter more than the job (`bytes`) and the process itself
// need, in steps of 64 MiB.
std::string ServerMemory(uint64_t bytes);
// With a GPU the limit includes CUDA's libraries.
std::string WorkerMemory(uint64_t bytes, bool on_gpu);
// How many servers a drain must leave. It may take as many servers as each block has further
// copies; but always one, because otherwise no node could ever be drained.
uint32_t ServersThatStay(uint32_t servers, uint32_t replicas);

}  // namespace leeway
