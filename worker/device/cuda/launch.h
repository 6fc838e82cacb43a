// Runs a kernel's body for each index of [0, count): as threads on the GPU, and in a loop
// elsewhere. So a test without a GPU runs the same bodies as the GPU.
#pragma once

#include <cstddef>

#include "worker/device/cuda/queue.h"

#if defined(__CUDACC__)
#include <cuda_runtime_api.h>
#endif

namespace leeway::cuda {

#if defined(__CUDACC__)

inline constexpr size_t kBlockThreads = 256;

template <typename Body>
__global__ void RunBody(size_t count, Body body) {
  const size_t i = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (i < count) body(i);
}

template <typename Body>
void RunBodies(Runtime& runtime, size_t count, const Body& body) {
  const auto blocks = static_cast<unsigned int>((count + kBlockThreads - 1) / kBlockThreads);
  auto* const stream = static_cast<cudaStream_t>(runtime.native(Stream::kCompute));
  RunBody<<<blocks, kBlockThreads, 0, stream>>>(count, body);
}

#else

// Runs the bodies in an order in which no index follows its neighbour. So a body that reads what
// another body writes gives wrong results in tests.
template <typename Body>
void RunBodies(Runtime&, size_t count, const Body& body) {
  constexpr size_t kStep = 7;
  for (size_t first = kStep; first-- > 0;) {
    for (size_t i = first; i < count; i += kStep) body(i);
  }
}

#endif

// Queues a kernel. `what` names the kernel in errors.
template <typename Body>
void Launch(Queue& queue, const char* what, size_t count, const Body& body) {
  if (count == 0 || !queue.BeginKernel(what)) return;
  RunBodies(queue.runtime(), count, body);
  queue.EndKernel();
}

}  // namespace leeway::cuda
