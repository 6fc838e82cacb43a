// How much a run's pods ask for, and how many servers a drain leaves. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace leeway {

// Limits of memory, "640Mi": a quarter more than the job (`bytes`) and the process itself take, in
// steps of 64 MiB.
std::string ServerMemory(uint64_t bytes);
// With a GPU CUDA's libraries come to it.
std::string WorkerMemory(uint64_t bytes, bool on_gpu);
// How many servers a drain must leave: it takes as many as the other copies of each block make up
// for, and one where there are none, or no node could ever be drained.
uint32_t ServersThatStay(uint32_t servers, uint32_t replicas);

}  // namespace leeway
