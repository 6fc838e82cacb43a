// Matrix products and convolutions by a library for CPUs: oneDNN, where Leeway is built with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "worker/compute/backend.h"
#include "worker/compute/shapes.h"
#include "worker/compute/thread_pool.h"

namespace leeway {

// A convolution whose channels and filters are in groups. A group's filters see its own channels
// only: weight [kernel x kernel x channels of a group x filters]. Groups divide both.
struct GroupedShape {
  Conv2dShape conv;
  uint32_t groups = 1;
};

// It uses the widest vectors that the processor has. Images are NHWC. Outputs are written whole. On
// one model of processor, results are a function of the values and the number of the pool's threads
// (docs/decisions/0006). The library decides by the sizes of the caches, too. Not thread-safe.
// Keeps the memory that its largest call took.
class CpuLibrary {
 public:
  virtual ~CpuLibrary() = default;

  // For the log: the library, its version, and the instructions that it uses.
  virtual std::string about() const = 0;

  // c [m x n] = op(a) [m x k] op(b) [k x n], added to c where `accumulate`; by the calling thread,
  // which may be any.
  virtual void Multiply(const GemmShape& shape, Op op_a, const float* a, Op op_b, const float* b,
                        bool accumulate, float* c) = 0;

  // False: the library has no fast kernels for this convolution, and is not to be asked for it.
  virtual bool Takes(const GroupedShape& shape, size_t batch) = 0;
  // bias may be null.
  virtual void ConvolveForward(const GroupedShape& shape, size_t batch, const float* x,
                               const float* weight, const float* bias, float* y) = 0;
  // dx may be null: not wanted. The bias's gradient is the caller's to sum.
  virtual void ConvolveBackward(const GroupedShape& shape, size_t batch, const float* x,
                                const float* weight, const float* dy, float* dweight,
                                float* dx) = 0;
  // The first error of the library. It stays: nothing computed since counts.
  virtual absl::Status status() const = 0;
};

// Shares out batches among the pool's threads. Null where Leeway is built without oneDNN, and where
// the environment has LEEWAY_ONEDNN=0.
std::unique_ptr<CpuLibrary> MakeCpuLibrary(ThreadPool& pool);

}  // namespace leeway
