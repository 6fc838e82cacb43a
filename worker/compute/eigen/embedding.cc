// Looks up rows of a table by number.
#include <algorithm>

#include "worker/compute/eigen/eigen_backend.h"

namespace leeway {
namespace {

// The number of values for which waking a thread is worthwhile.
constexpr size_t kEmbeddingGrain = 1 << 13;

}  // namespace

void EigenBackend::EmbedForward(const EmbedShape& shape, const float* tokens, const float* weight,
                                float* y) {
  const size_t grain = std::max<size_t>(1, kEmbeddingGrain / shape.width);
  pool_.For(shape.count, grain, [=](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) {
      const float* row = weight + static_cast<size_t>(tokens[i]) * shape.width;
      std::copy_n(row, shape.width, y + i * shape.width);
    }
  });
}

// Each thread sums whole columns, so every row is summed in the order of the tokens, for any number
// of threads.
void EigenBackend::EmbedBackward(const EmbedShape& shape, const float* tokens, const float* dy,
                                 bool accumulate, float* dweight) {
  const size_t width = shape.width;
  const size_t grain = std::max<size_t>(16, kEmbeddingGrain / std::max<size_t>(1, shape.count));
  pool_.For(width, grain, [=](size_t begin, size_t end, uint32_t) {
    if (!accumulate) {
      for (size_t row = 0; row < shape.vocabulary; ++row) {
        std::fill_n(dweight + row * width + begin, end - begin, 0.0f);
      }
    }
    for (size_t i = 0; i < shape.count; ++i) {
      float* sum = dweight + static_cast<size_t>(tokens[i]) * width;
      const float* row = dy + i * width;
      for (size_t c = begin; c < end; ++c) sum[c] += row[c];
    }
  });
}

}  // namespace leeway
