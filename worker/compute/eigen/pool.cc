// Pooling: channels lie next to each other, so that every loop over them is a vector loop.
#include <algorithm>
#include <cstdint>

#include "worker/compute/eigen/eigen_backend.h"

namespace leeway {
namespace {

// Calls visit(output index, input index) with the first channel's indices of every window of examples [begin, end).
template <typename Visit>
void ForEachWindow(const PoolShape& shape, size_t begin, size_t end, Visit visit) {
  const ImageShape out = shape.output();
  const size_t channels = shape.input.channels;
  size_t y = begin * out.elements();
  for (size_t example = begin; example < end; ++example) {
    for (size_t row = 0; row < out.height; ++row) {
      const size_t line = (example * shape.input.height + row * shape.stride) * shape.input.width;
      for (size_t column = 0; column < out.width; ++column, y += channels) {
        visit(y, (line + column * shape.stride) * channels);
      }
    }
  }
}

// Calls visit(place, input offset) for every pixel of a window.
template <typename Visit>
void ForEachPixel(const PoolShape& shape, Visit visit) {
  uint32_t place = 0;
  for (size_t row = 0; row < shape.size; ++row) {
    for (size_t column = 0; column < shape.size; ++column, ++place) {
      visit(place, (row * shape.input.width + column) * shape.input.channels);
    }
  }
}

size_t Grain(const PoolShape& shape) {
  return 1 + (1 << 15) / std::max<size_t>(1, shape.input.elements());
}

void MaxOfWindow(const PoolShape& shape, const float* x, float* winners, float* y) {
  const size_t channels = shape.input.channels;
  std::copy_n(x, channels, y);
  std::fill_n(winners, channels, 0.0f);
  ForEachPixel(shape, [&](uint32_t place, size_t offset) {
    const float* pixel = x + offset;
    for (size_t c = 0; c < channels; ++c) {
      // A NaN wins and stays.
      const bool wins = !(pixel[c] <= y[c]) && y[c] == y[c];
      winners[c] = wins ? static_cast<float>(place) : winners[c];
      y[c] = wins ? pixel[c] : y[c];
    }
  });
}

}  // namespace

void EigenBackend::MaxPoolForward(const PoolShape& shape, size_t batch, const float* x,
                                  float* winners, float* y) {
  pool_.For(batch, Grain(shape), [=, &shape](size_t begin, size_t end, uint32_t) {
    const size_t channels = shape.input.channels;
    ForEachWindow(shape, begin, end, [&](size_t out, size_t in) {
      if (winners != nullptr) {
        MaxOfWindow(shape, x + in, winners + out, y + out);
        return;
      }
      std::copy_n(x + in, channels, y + out);
      ForEachPixel(shape, [&](uint32_t, size_t offset) {
        const float* pixel = x + in + offset;
        float* best = y + out;
        for (size_t c = 0; c < channels; ++c) {
          best[c] = !(pixel[c] <= best[c]) && best[c] == best[c] ? pixel[c] : best[c];
        }
      });
    });
  });
}

void EigenBackend::MaxPoolBackward(const PoolShape& shape, size_t batch, const float* winners,
                                   const float* dy, float* dx) {
  pool_.For(batch, Grain(shape), [=, &shape](size_t begin, size_t end, uint32_t) {
    const size_t channels = shape.input.channels;
    const size_t elements = shape.input.elements();
    std::fill_n(dx + begin * elements, (end - begin) * elements, 0.0f);
    ForEachWindow(shape, begin, end, [&](size_t out, size_t in) {
      ForEachPixel(shape, [&](uint32_t place, size_t offset) {
        float* pixel = dx + in + offset;
        const float own = static_cast<float>(place);
        for (size_t c = 0; c < channels; ++c) {
          pixel[c] += winners[out + c] == own ? dy[out + c] : 0.0f;
        }
      });
    });
  });
}

void EigenBackend::AvgPoolForward(const PoolShape& shape, size_t batch, const float* x, float* y) {
  pool_.For(batch, Grain(shape), [=, &shape](size_t begin, size_t end, uint32_t) {
    const size_t channels = shape.input.channels;
    const float share = 1.0f / static_cast<float>(shape.size * shape.size);
    ForEachWindow(shape, begin, end, [&](size_t out, size_t in) {
      std::fill_n(y + out, channels, 0.0f);
      ForEachPixel(shape, [&](uint32_t, size_t offset) {
        for (size_t c = 0; c < channels; ++c) y[out + c] += x[in + offset + c];
      });
      for (size_t c = 0; c < channels; ++c) y[out + c] *= share;
    });
  });
}

void EigenBackend::AvgPoolBackward(const PoolShape& shape, size_t batch, const float* dy,
                                   float* dx) {
  pool_.For(batch, Grain(shape), [=, &shape](size_t begin, size_t end, uint32_t) {
    const size_t channels = shape.input.channels;
    const size_t elements = shape.input.elements();
    const float share = 1.0f / static_cast<float>(shape.size * shape.size);
    std::fill_n(dx + begin * elements, (end - begin) * elements, 0.0f);
    ForEachWindow(shape, begin, end, [&](size_t out, size_t in) {
      ForEachPixel(shape, [&](uint32_t, size_t offset) {
        for (size_t c = 0; c < channels; ++c) dx[in + offset + c] += dy[out + c] * share;
      });
    });
  });
}

}  // namespace leeway
