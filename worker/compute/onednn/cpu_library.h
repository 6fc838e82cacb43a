// The interface of a library for matrix products and convolutions on CPUs: oneDNN, if Leeway is
// built with it.
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

// A convolution whose channels and filters are divided into groups. The filters of a group see only
// the group's channels. The weight is [kernel x kernel x channels of a group x filters]. The
// number of groups must divide the channels and the filters.
struct GroupedShape {
  Conv2dShape conv;
  uint32_t groups = 1;
};

// The library uses the widest vectors of the processor. Images are NHWC. Outputs are overwritten.
// On one model of processor, results are a function of the values and of the number of the pool's
// threads (docs/decisions/0006). The sizes of the caches also matter. Not thread-safe. The library
// keeps as much memory as its largest call needed.
class CpuLibrary {
 public:
  virtual ~CpuLibrary() = default;

  // Returns a description for the log: the library, its version, and the instructions that it uses.
  virtual std::string about() const = 0;

  // Computes c [m x n] = op(a) [m x k] op(b) [k x n] on the calling thread. With `accumulate` adds
  // the product to c instead. Any thread may call this method.
  virtual void Multiply(const GemmShape& shape, Op op_a, const float* a, Op op_b, const float* b,
                        bool accumulate, float* c) = 0;

  // Returns false if the library has no fast kernels for this convolution. The caller must then not
  // call ConvolveForward or ConvolveBackward for it.
  virtual bool Takes(const GroupedShape& shape, size_t batch) = 0;
  // bias may be null.
  virtual void ConvolveForward(const GroupedShape& shape, size_t batch, const float* x,
                               const float* weight, const float* bias, float* y) = 0;
  // dx may be null if it is not needed. The caller computes the gradient of the bias.
  virtual void ConvolveBackward(const GroupedShape& shape, size_t batch, const float* x,
                                const float* weight, const float* dy, float* dweight,
                                float* dx) = 0;
  // Returns the first error of the library. The error stays, because results since then are
  // invalid.
  virtual absl::Status status() const = 0;
};

// Makes a library that divides batches among the pool's threads. Returns null if Leeway is built
// without oneDNN, or if the environment has LEEWAY_ONEDNN=0.
std::unique_ptr<CpuLibrary> MakeCpuLibrary(ThreadPool& pool);

}  // namespace leeway
