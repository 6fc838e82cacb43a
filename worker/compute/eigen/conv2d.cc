// Convolution as matrix products over patches (Chellapilla, Puri, Simard 2006), in chunks that stay
// in the cache.
#include <algorithm>
#include <vector>

#include "worker/compute/eigen/columns.h"
#include "worker/compute/eigen/eigen_backend.h"
#include "worker/compute/eigen/gemm.h"
#include "worker/compute/eigen/patches.h"
#include "worker/compute/eigen/rounding.h"

namespace leeway {
namespace {

// The number of floats of patches in a chunk. 256 KiB is half of the expected second-level cache.
constexpr size_t kChunkFloats = 1 << 16;

size_t RoundUp(size_t floats) { return (floats + 15) / 16 * 16; }

// How a pass is divided into parts, and the layout of the scratch. Each part has memory for a chunk
// of patches, followed by memory for its own sums of dweight and dbias. Part 0 writes its sums
// directly to dweight and dbias.
struct Chunks {
  explicit Chunks(const Conv2dShape& shape)
      : out(shape.output()),
        patch(shape.patch()),
        filters(shape.filters),
        lines(std::max<size_t>(1, kChunkFloats / (out.width * patch))),
        patch_floats(RoundUp(lines * out.width * patch)),
        weight_floats(RoundUp(patch * filters)),
        part_floats(patch_floats + weight_floats + RoundUp(filters)) {}

  ImageShape out;
  size_t patch;
  size_t filters;
  size_t lines;
  size_t patch_floats;
  size_t weight_floats;
  size_t part_floats;
};

// Returns true if a patch is a single pixel, so that the convolution is one matrix product. In this
// case oneDNN's convolution is up to three times slower (docs/decisions/0006).
bool IsProduct(const Conv2dShape& shape) {
  return shape.kernel == 1 && shape.stride == 1 && shape.padding == 0;
}

size_t OutputPixels(const Conv2dShape& shape, size_t batch) {
  return batch * shape.output().height * shape.output().width;
}

// The inputs of the backward pass's products. dy and the weight are rounded factors.
struct Factors {
  Precision precision;
  const float* x;
  const float* weight;
  const float* dy;
};

// The outputs of one part of the backward pass.
struct Gradients {
  float* patches;
  float* dweight;
  float* dbias;
  float* dx;
};

// Gathers patches and rounds them as a factor of a product.
void GatherFactor(const Conv2dShape& shape, Precision precision, const float* x, size_t begin,
                  size_t end, float* patches) {
  GatherPatches(shape, x, begin, end, patches);
  if (precision == Precision::kFp32) return;
  RoundAll(precision, (end - begin) * shape.output().width * shape.patch(), patches, patches);
}

void BackwardPart(const Conv2dShape& shape, const Chunks& chunks, size_t begin, size_t end,
                  const Factors& from, const float* dy, const Gradients& to) {
  const size_t filters = chunks.filters;
  const size_t elements = shape.input.elements();
  std::fill_n(to.dweight, chunks.patch * filters, 0.0f);
  if (to.dbias != nullptr) std::fill_n(to.dbias, filters, 0.0f);
  if (to.dx != nullptr) std::fill_n(to.dx + begin * elements, (end - begin) * elements, 0.0f);
  std::vector<double> totals;
  const size_t last = end * chunks.out.height;
  for (size_t line = begin * chunks.out.height; line < last; line += chunks.lines) {
    const size_t line_end = std::min(last, line + chunks.lines);
    const size_t pixels = (line_end - line) * chunks.out.width;
    const float* factor = from.dy + line * chunks.out.width * filters;
    GatherFactor(shape, from.precision, from.x, line, line_end, to.patches);
    GemmAdd({chunks.patch, filters, pixels}, {to.patches, chunks.patch, Op::kTransposed},
            {factor, filters}, to.dweight, filters);
    if (to.dbias != nullptr) {
      const float* slope = dy + line * chunks.out.width * filters;
      ColumnSums(
          pixels, filters, totals, [=](size_t r, size_t c) { return slope[r * filters + c]; },
          [&](size_t c, double sum) { to.dbias[c] += static_cast<float>(sum); });
    }
    if (to.dx == nullptr) continue;
    std::fill_n(to.patches, pixels * chunks.patch, 0.0f);
    GemmAdd({pixels, chunks.patch, filters}, {factor, filters},
            {from.weight, filters, Op::kTransposed}, to.patches, chunks.patch);
    ScatterPatches(shape, to.patches, line, line_end, to.dx);
  }
}

}  // namespace

size_t EigenBackend::Conv2dScratch(const Conv2dShape& shape, size_t batch) const {
  return Chunks(shape).part_floats * pool_.Parts(batch, 1);
}

void EigenBackend::Conv2dForward(const Conv2dShape& shape, size_t batch, const float* x,
                                 const float* weight, const float* bias, float* scratch, float* y) {
  if (library_ != nullptr && IsProduct(shape)) {
    const size_t pixels = OutputPixels(shape, batch);
    if (bias != nullptr) FillRows(pixels, shape.filters, bias, y);
    return Gemm({pixels, shape.filters, shape.patch()}, Op::kAsIs, x, Op::kAsIs, weight,
                bias != nullptr, y);
  }
  // The library cannot round the factors, so it computes in fp32 only.
  if (precision_ == Precision::kFp32 && LibraryTakes({shape}, batch)) {
    return library_->ConvolveForward({shape}, batch, x, weight, bias, y);
  }
  const Chunks chunks(shape);
  MatrixRef factor{weight, chunks.filters};
  RoundFactor(Factor::kSecond, chunks.patch, chunks.filters, factor);
  pool_.For(batch, 1, [=, this, &shape, &chunks](size_t begin, size_t end, uint32_t part) {
    float* patches = scratch + part * chunks.part_floats;
    const size_t last = end * chunks.out.height;
    for (size_t line = begin * chunks.out.height; line < last; line += chunks.lines) {
      const size_t line_end = std::min(last, line + chunks.lines);
      const size_t pixels = (line_end - line) * chunks.out.width;
      float* target = y + line * chunks.out.width * chunks.filters;
      if (bias != nullptr) {
        for (size_t i = 0; i < pixels; ++i)
          std::copy_n(bias, chunks.filters, target + i * chunks.filters);
      } else {
        std::fill_n(target, pixels * chunks.filters, 0.0f);
      }
      GatherFactor(shape, precision_, x, line, line_end, patches);
      GemmAdd({pixels, chunks.filters, chunks.patch}, {patches, chunks.patch}, factor, target,
              chunks.filters);
    }
  });
}

void EigenBackend::Conv2dBackward(const Conv2dShape& shape, size_t batch, const float* x,
                                  const float* weight, const float* dy, float* scratch,
                                  float* dweight, float* dbias, float* dx) {
  if (library_ != nullptr && IsProduct(shape)) {
    const size_t pixels = OutputPixels(shape, batch);
    Gemm({shape.patch(), shape.filters, pixels}, Op::kTransposed, x, Op::kAsIs, dy, false, dweight);
    if (dbias != nullptr) SumRows(pixels, shape.filters, dy, dbias);
    if (dx == nullptr) return;
    return Gemm({pixels, shape.patch(), shape.filters}, Op::kAsIs, dy, Op::kTransposed, weight,
                false, dx);
  }
  if (precision_ == Precision::kFp32 && LibraryTakes({shape}, batch)) {
    library_->ConvolveBackward({shape}, batch, x, weight, dy, dweight, dx);
    if (dbias != nullptr) SumRows(OutputPixels(shape, batch), shape.filters, dy, dbias);
    return;
  }
  const Chunks chunks(shape);
  MatrixRef slopes{dy, chunks.filters};
  MatrixRef weights{weight, chunks.filters};
  RoundFactor(Factor::kFirst, batch * chunks.out.height * chunks.out.width, chunks.filters, slopes);
  RoundFactor(Factor::kSecond, chunks.patch, chunks.filters, weights);
  const Factors from{precision_, x, weights.data, slopes.data};
  const auto gradients = [&](uint32_t part) {
    float* own = scratch + part * chunks.part_floats;
    float* own_dweight = own + chunks.patch_floats;
    float* own_dbias = dbias == nullptr ? nullptr : own_dweight + chunks.weight_floats;
    return part == 0 ? Gradients{own, dweight, dbias, dx}
                     : Gradients{own, own_dweight, own_dbias, dx};
  };
  pool_.For(batch, 1, [&](size_t begin, size_t end, uint32_t part) {
    BackwardPart(shape, chunks, begin, end, from, dy, gradients(part));
  });
  for (uint32_t part = 1; part < pool_.Parts(batch, 1); ++part) {
    const Gradients more = gradients(part);
    for (size_t i = 0; i < chunks.patch * chunks.filters; ++i) dweight[i] += more.dweight[i];
    for (size_t i = 0; dbias != nullptr && i < chunks.filters; ++i) dbias[i] += more.dbias[i];
  }
}

}  // namespace leeway
