// Depthwise convolution. The channels of a pixel are adjacent, so every loop over them is a vector
// loop.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "worker/compute/eigen/eigen_backend.h"
#include "worker/compute/eigen/vectors.h"

namespace leeway {
namespace {

// The positions of a window, along one side, that are inside the image.
struct Taps {
  int64_t first = 0;
  uint32_t begin = 0;
  uint32_t end = 0;
};

Taps TapsAt(const Conv2dShape& shape, size_t output, uint32_t side) {
  const int64_t first = static_cast<int64_t>(output * shape.stride) - shape.padding;
  const int64_t begin = std::max<int64_t>(0, -first);
  const int64_t end = std::min<int64_t>(shape.kernel, int64_t{side} - first);
  return {first, static_cast<uint32_t>(begin), static_cast<uint32_t>(std::max(begin, end))};
}

// Calls visit(tap, pixel offset in floats) for each position of the window at output (row, column).
template <typename Visit>
void ForEachTap(const Conv2dShape& shape, size_t row, size_t column, Visit visit) {
  const Taps rows = TapsAt(shape, row, shape.input.height);
  const Taps columns = TapsAt(shape, column, shape.input.width);
  for (uint32_t r = rows.begin; r < rows.end; ++r) {
    const auto line = static_cast<size_t>(rows.first + r) * shape.input.width;
    for (uint32_t c = columns.begin; c < columns.end; ++c) {
      visit(size_t{r} * shape.kernel + c,
            (line + static_cast<size_t>(columns.first + c)) * shape.input.channels);
    }
  }
}

// Calls visit(input, output) for each output pixel. `input` is the offset of the example's image,
// and `output` is the offset of the output at (row, column).
template <typename Visit>
void ForEachOutput(const Conv2dShape& shape, size_t begin, size_t end, Visit visit) {
  const ImageShape out = shape.output();
  size_t y = begin * out.elements();
  for (size_t example = begin; example < end; ++example) {
    for (size_t row = 0; row < out.height; ++row) {
      for (size_t column = 0; column < out.width; ++column, y += out.channels) {
        visit(example * shape.input.elements(), y, row, column);
      }
    }
  }
}

// Computes the gradient of the weights of kWidth channels, summed in float within an example and in
// double across examples.
template <size_t kWidth>
void WeightSlopes(const Conv2dShape& shape, size_t batch, const float* x, const float* dy,
                  size_t channel, std::vector<double>& totals, std::vector<float>& sums,
                  float* dweight) {
  const size_t taps = size_t{shape.kernel} * shape.kernel;
  std::fill_n(totals.begin(), taps * kWidth, 0.0);
  for (size_t example = 0; example < batch; ++example) {
    std::fill_n(sums.begin(), taps * kWidth, 0.0f);
    ForEachOutput(shape, example, example + 1, [&](size_t in, size_t out, size_t row, size_t col) {
      std::array<float, kWidth> slope;
      std::copy_n(dy + out + channel, kWidth, slope.begin());
      ForEachTap(shape, row, col, [&](size_t tap, size_t offset) {
        const float* pixel = x + in + offset + channel;
        float* sum = sums.data() + tap * kWidth;
        for (size_t i = 0; i < kWidth; ++i) sum[i] += pixel[i] * slope[i];
      });
    });
    for (size_t i = 0; i < taps * kWidth; ++i) totals[i] += sums[i];
  }
  for (size_t tap = 0; tap < taps; ++tap) {
    for (size_t i = 0; i < kWidth; ++i) {
      dweight[tap * shape.filters + channel + i] = static_cast<float>(totals[tap * kWidth + i]);
    }
  }
}

}  // namespace

void EigenBackend::DepthwiseForward(const Conv2dShape& shape, size_t batch, const float* x,
                                    const float* weight, const float* bias, float* y) {
  if (const GroupedShape each{shape, shape.filters}; LibraryTakes(each, batch)) {
    return library_->ConvolveForward(each, batch, x, weight, bias, y);
  }
  pool_.For(batch, 1, [=, &shape](size_t begin, size_t end, uint32_t) {
    ForEachOutput(shape, begin, end, [&](size_t in, size_t out, size_t row, size_t column) {
      ForChannelGroups(shape.filters, [&]<size_t kWidth>(size_t c) {
        std::array<float, kWidth> sum{};
        if (bias != nullptr) std::copy_n(bias + c, kWidth, sum.begin());
        ForEachTap(shape, row, column, [&](size_t tap, size_t offset) {
          const float* pixel = x + in + offset + c;
          const float* factor = weight + tap * shape.filters + c;
          for (size_t i = 0; i < kWidth; ++i) sum[i] += pixel[i] * factor[i];
        });
        std::copy_n(sum.begin(), kWidth, y + out + c);
      });
    });
  });
}

void EigenBackend::DepthwiseBackward(const Conv2dShape& shape, size_t batch, const float* x,
                                     const float* weight, const float* dy, float* dweight,
                                     float* dx) {
  if (const GroupedShape each{shape, shape.filters}; LibraryTakes(each, batch)) {
    return library_->ConvolveBackward(each, batch, x, weight, dy, dweight, dx);
  }
  // Each thread has its own channels, so the number of threads does not change any sum.
  constexpr size_t kGroup = 16;
  const size_t groups = (shape.filters + kGroup - 1) / kGroup;
  pool_.For(groups, 1, [=, &shape](size_t begin, size_t end, uint32_t) {
    const size_t taps = size_t{shape.kernel} * shape.kernel;
    std::vector<double> totals(taps * kGroup);
    std::vector<float> sums(taps * kGroup);
    const size_t first = begin * kGroup;
    const size_t last = std::min<size_t>(shape.filters, end * kGroup);
    ForChannelGroups(last - first, [&]<size_t kWidth>(size_t c) {
      WeightSlopes<kWidth>(shape, batch, x, dy, first + c, totals, sums, dweight);
    });
  });
  if (dx == nullptr) return;
  pool_.For(batch, 1, [=, &shape](size_t begin, size_t end, uint32_t) {
    const size_t elements = shape.input.elements();
    std::fill_n(dx + begin * elements, (end - begin) * elements, 0.0f);
    ForEachOutput(shape, begin, end, [&](size_t in, size_t out, size_t row, size_t column) {
      ForChannelGroups(shape.filters, [&]<size_t kWidth>(size_t c) {
        std::array<float, kWidth> slope;
        std::copy_n(dy + out + c, kWidth, slope.begin());
        ForEachTap(shape, row, column, [&](size_t tap, size_t offset) {
          float* pixel = dx + in + offset + c;
          const float* factor = weight + tap * shape.filters + c;
          for (size_t i = 0; i < kWidth; ++i) pixel[i] += slope[i] * factor[i];
        });
      });
    });
  });
}

}  // namespace leeway
