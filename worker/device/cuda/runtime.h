// The calls of CUDA and cuBLAS that CudaBackend needs, one method for each. The module implements
// them (module/gpu_runtime.h). Tests have an implementation that needs no GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "worker/compute/backend.h"
#include "worker/compute/precision.h"
#include "worker/device/cuda/convolver.h"

namespace leeway::cuda {

// An error number. Numbers from kCudnn on are cuDNN's, other numbers from kCublas on are cuBLAS's,
// and lower numbers are CUDA's.
using Code = int;
inline constexpr Code kSuccess = 0;
inline constexpr Code kOutOfMemory = 2;
inline constexpr Code kNotReady = 600;
inline constexpr Code kCublas = 10000;
inline constexpr Code kCudnn = 20000;

// A product in the form of BLAS: column-major, c [m x n] = op(a) [m x k] op(b) [k x n] + beta c.
// Sums and c are float32.
struct BlasProduct {
  // The type of a and b: floats for fp32 and for tf32 (which rounds them), and 16-bit values for
  // bf16 and fp16.
  Precision precision = Precision::kFp32;
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  const void* a = nullptr;
  int64_t lda = 0;
  const void* b = nullptr;
  int64_t ldb = 0;
  float beta = 0;
  float* c = nullptr;
  int64_t ldc = 0;
};

// Calls come from one thread at a time. No call throws. A call reports its own errors, and leaves
// none for the next call to report.
class Runtime {
 public:
  virtual ~Runtime() = default;

  // Returns "cuda:0, NVIDIA H200 (compute capability 9.0)", for example.
  virtual std::string device() const = 0;
  virtual std::string Describe(Code code) const = 0;
  // Returns true if the error means that memory ran out.
  virtual bool OutOfMemory(Code code) const { return code == kOutOfMemory; }

  virtual Code Allocate(size_t bytes, void** device) = 0;
  virtual Code Free(void* device) = 0;
  virtual Code MemoryLeft(size_t* free, size_t* total) = 0;
  // Pins host memory, so that the device copies it while the host goes on, and at the link's full
  // rate.
  virtual Code Pin(void* host, size_t bytes) = 0;
  virtual Code Unpin(void* host) = 0;

  virtual Code CopyUp(Stream stream, const void* host, void* device, size_t bytes) = 0;
  virtual Code CopyDown(Stream stream, const void* device, void* host, size_t bytes) = 0;
  virtual Code CopyInside(const void* from, void* to, size_t bytes) = 0;

  virtual Code MakeEvent(void** event) = 0;
  virtual Code DestroyEvent(void* event) = 0;
  virtual Code Record(void* event, Stream stream) = 0;
  virtual Code Wait(Stream stream, void* event) = 0;
  // Returns kNotReady if the event is not done yet.
  virtual Code Query(void* event) = 0;
  virtual Code Await(void* event) = 0;
  // Waits until all streams are empty.
  virtual Code AwaitAll() = 0;

  // Queues the product in kCompute.
  virtual Code Multiply(const BlasProduct& product) = 0;
  // Returns the library for convolutions. If null, convolutions are products of patches.
  virtual Convolver* convolver() { return nullptr; }
  // Launch calls these methods. BeforeLaunch selects the device for this thread. AfterLaunch
  // returns the launch's error code.
  virtual Code BeforeLaunch() = 0;
  virtual Code AfterLaunch() = 0;
  // Returns the stream's cudaStream_t.
  virtual void* native(Stream stream) = 0;
};

}  // namespace leeway::cuda
