// Matrix products by cuBLAS. Convolutions that no library computes (cuda_convolution.cc) are
// products over patches (Chellapilla, Puri, Simard 2006). Each product covers as many examples as
// fit into the scratch.
#include <algorithm>

#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/kernels/elementwise.h"
#include "worker/device/cuda/kernels/patches.h"
#include "worker/device/cuda/launch.h"
#include "worker/device/cuda/sums.h"

namespace leeway::cuda {
namespace {

// The number of floats of patches for one product. 64 MiB is enough to keep a GPU busy.
constexpr size_t kChunkFloats = size_t{16} << 20;

size_t ChunkExamples(const PatchShape& shape, size_t batch) {
  const size_t each = shape.pixels() * shape.patch;
  return std::min(batch, std::max<size_t>(1, kChunkFloats / std::max<size_t>(1, each)));
}

// Returns true if the patches are the images themselves, so that one product computes all pixels.
bool IsProduct(const Conv2dShape& shape) {
  return shape.kernel == 1 && shape.stride == 1 && shape.padding == 0;
}

}  // namespace

void CudaBackend::Gemm(const GemmShape& shape, Op op_a, const float* a, Op op_b, const float* b,
                       bool accumulate, float* c) {
  if (shape.m == 0 || shape.n == 0) return;
  if (shape.k > 0) {
    GemmInPrecision(shape, op_a, a, op_b, b, accumulate, c);
  } else if (!accumulate) {
    const size_t stride = shape.c_stride == 0 ? shape.n : shape.c_stride;
    Launch(queue_, "Gemm", shape.m * shape.n, ZeroRows{shape.n, stride, c});
  }
}

size_t CudaBackend::Conv2dScratch(const Conv2dShape& shape, size_t batch) const {
  const PatchShape patches = PatchShape::Of(shape);
  // The scratch holds either patches or filters in the library's layout.
  if (IsProduct(shape)) return patches.patch * shape.filters;
  return std::max(ChunkExamples(patches, batch) * patches.pixels() * patches.patch,
                  patches.patch * shape.filters);
}

void CudaBackend::Conv2dForward(const Conv2dShape& shape, size_t batch, const float* x,
                                const float* weight, const float* bias, float* scratch, float* y) {
  if (ConvolveForward(shape, batch, x, weight, bias, scratch, y)) return;
  const PatchShape patches = PatchShape::Of(shape);
  if (IsProduct(shape)) {
    const size_t pixels = batch * patches.pixels();
    if (bias != nullptr) FillRows(pixels, shape.filters, bias, y);
    return Gemm({.m = pixels, .n = shape.filters, .k = patches.patch}, Op::kAsIs, x, Op::kAsIs,
                weight, bias != nullptr, y);
  }
  const size_t most = ChunkExamples(patches, batch);
  for (size_t begin = 0; begin < batch; begin += most) {
    const size_t pixels = std::min(most, batch - begin) * patches.pixels();
    float* const target = y + begin * patches.pixels() * shape.filters;
    if (bias != nullptr) FillRows(pixels, shape.filters, bias, target);
    Launch(queue_, "Conv2dForward", pixels * patches.patch,
           GatherPatches{patches, x + begin * patches.elements(), scratch});
    Gemm({.m = pixels, .n = shape.filters, .k = patches.patch}, Op::kAsIs, scratch, Op::kAsIs,
         weight, bias != nullptr, target);
  }
}

void CudaBackend::Conv2dBackward(const Conv2dShape& shape, size_t batch, const float* x,
                                 const float* weight, const float* dy, float* scratch,
                                 float* dweight, float* dbias, float* dx) {
  const PatchShape patches = PatchShape::Of(shape);
  const size_t filters = shape.filters;
  if (dbias != nullptr) SumRows(batch * patches.pixels(), filters, dy, dbias);
  const bool filters_done = ConvolveFilters(shape, batch, x, dy, scratch, dweight);
  const bool data_done = dx == nullptr || ConvolveData(shape, batch, weight, dy, scratch, dx);
  if (IsProduct(shape)) {
    const size_t pixels = batch * patches.pixels();
    if (!filters_done) {
      Gemm({.m = patches.patch, .n = filters, .k = pixels}, Op::kTransposed, x, Op::kAsIs, dy,
           false, dweight);
    }
    if (!data_done) {
      Gemm({.m = pixels, .n = patches.patch, .k = filters}, Op::kAsIs, dy, Op::kTransposed, weight,
           false, dx);
    }
    return;
  }
  const size_t left = filters_done && data_done ? 0 : batch;
  const size_t most = ChunkExamples(patches, batch);
  for (size_t begin = 0; begin < left; begin += most) {
    const size_t examples = std::min(most, batch - begin);
    const size_t pixels = examples * patches.pixels();
    const size_t first = begin * patches.elements();
    const float* const slope = dy + begin * patches.pixels() * filters;
    if (!filters_done) {
      Launch(queue_, "Conv2dBackward", pixels * patches.patch,
             GatherPatches{patches, x + first, scratch});
      Gemm({.m = patches.patch, .n = filters, .k = pixels}, Op::kTransposed, scratch, Op::kAsIs,
           slope, begin > 0, dweight);
    }
    if (data_done) continue;
    Gemm({.m = pixels, .n = patches.patch, .k = filters}, Op::kAsIs, slope, Op::kTransposed, weight,
         false, scratch);
    Launch(queue_, "Conv2dBackward", examples * patches.elements(),
           CollectPatches{patches, scratch, dx + first});
  }
}

}  // namespace leeway::cuda
