// Pooling. Channels lie next to each other, so that every loop over them is a vector loop.
#include <algorithm>
#include <array>
#include <cstdint>

#include "worker/compute/eigen/eigen_backend.h"
#include "worker/compute/eigen/vectors.h"

namespace leeway {
namespace {

// A window's places inside the image, and the input's element at place (0, 0), which may be before
// it.
struct Window {
  size_t row_begin = 0, row_end = 0;
  size_t column_begin = 0, column_end = 0;
  int64_t first = 0;
};

// Places [begin, end) of a window of `size` that begins at `first` which are inside [0, side).
void Clip(int64_t first, size_t size, size_t side, size_t& begin, size_t& end) {
  begin = static_cast<size_t>(std::max<int64_t>(0, -first));
  end =
      static_cast<size_t>(std::min(static_cast<int64_t>(size), static_cast<int64_t>(side) - first));
}

// Calls visit(output index, window), with the first channel's indices, for every window of examples
// [begin, end).
template <typename Visit>
void ForEachWindow(const PoolShape& shape, size_t begin, size_t end, Visit visit) {
  const ImageShape out = shape.output();
  const ImageShape& in = shape.input;
  size_t y = begin * out.elements();
  Window window;
  for (size_t example = begin; example < end; ++example) {
    for (size_t row = 0; row < out.height; ++row) {
      const int64_t line = static_cast<int64_t>(row * shape.stride) - shape.padding;
      Clip(line, shape.size, in.height, window.row_begin, window.row_end);
      for (size_t column = 0; column < out.width; ++column, y += in.channels) {
        const int64_t pixel = static_cast<int64_t>(column * shape.stride) - shape.padding;
        Clip(pixel, shape.columns(), in.width, window.column_begin, window.column_end);
        window.first = static_cast<int64_t>(example * in.elements()) +
                       (line * in.width + pixel) * static_cast<int64_t>(in.channels);
        visit(y, window);
      }
    }
  }
}

// Calls visit(place, input index) for every pixel of a window.
template <typename Visit>
void ForEachPixel(const PoolShape& shape, const Window& window, Visit visit) {
  for (size_t row = window.row_begin; row < window.row_end; ++row) {
    for (size_t column = window.column_begin; column < window.column_end; ++column) {
      const size_t offset = (row * shape.input.width + column) * shape.input.channels;
      visit(static_cast<float>(row * shape.columns() + column),
            static_cast<size_t>(window.first + static_cast<int64_t>(offset)));
    }
  }
}

size_t Grain(const PoolShape& shape) {
  return 1 + (1 << 15) / std::max<size_t>(1, shape.input.elements());
}

template <size_t kWidth>
void MaxOfWindow(const PoolShape& shape, const Window& window, const float* x, float* winners,
                 float* y) {
  std::array<float, kWidth> best{};
  std::array<float, kWidth> winner{};
  bool first = true;
  ForEachPixel(shape, window, [&](float place, size_t at) {
    const float* pixel = x + at;
    if (first) {
      std::copy_n(pixel, kWidth, best.begin());
      winner.fill(place);
      first = false;
      return;
    }
    for (size_t c = 0; c < kWidth; ++c) {
      // A NaN wins and stays.
      const bool stays = pixel[c] <= best[c] || best[c] != best[c];
      winner[c] = stays ? winner[c] : place;
      best[c] = stays ? best[c] : pixel[c];
    }
  });
  std::copy_n(best.begin(), kWidth, y);
  if (winners != nullptr) std::copy_n(winner.begin(), kWidth, winners);
}

// Hands a window's gradients out: to pixels that no other window has (kOverlap false), or that may
// have some already.
template <size_t kWidth, bool kOverlap>
void SpreadToWinners(const PoolShape& shape, const Window& window, const float* winners,
                     const float* dy, float* dx) {
  std::array<float, kWidth> winner;
  std::array<float, kWidth> slope;
  std::copy_n(winners, kWidth, winner.begin());
  std::copy_n(dy, kWidth, slope.begin());
  ForEachPixel(shape, window, [&](float place, size_t at) {
    float* pixel = dx + at;
    for (size_t c = 0; c < kWidth; ++c) {
      const float share = winner[c] == place ? slope[c] : 0.0f;
      pixel[c] = kOverlap ? pixel[c] + share : share;
    }
  });
}

// Whether each input pixel is in exactly one window, so that gradients are written instead of
// added.
bool Tiles(const PoolShape& shape) {
  return shape.padding == 0 && shape.stride == shape.size && shape.stride == shape.columns() &&
         shape.input.height % shape.size == 0 && shape.input.width % shape.size == 0;
}

}  // namespace

void EigenBackend::MaxPoolForward(const PoolShape& shape, size_t batch, const float* x,
                                  float* winners, float* y) {
  pool_.For(batch, Grain(shape), [=, &shape](size_t begin, size_t end, uint32_t) {
    ForEachWindow(shape, begin, end, [&](size_t out, const Window& window) {
      ForChannelGroups(shape.input.channels, [&]<size_t kWidth>(size_t c) {
        MaxOfWindow<kWidth>(shape, window, x + c, winners == nullptr ? nullptr : winners + out + c,
                            y + out + c);
      });
    });
  });
}

void EigenBackend::MaxPoolBackward(const PoolShape& shape, size_t batch, const float* winners,
                                   const float* dy, float* dx) {
  const bool tiles = Tiles(shape);
  pool_.For(batch, Grain(shape), [=, &shape](size_t begin, size_t end, uint32_t) {
    const size_t elements = shape.input.elements();
    if (!tiles) std::fill_n(dx + begin * elements, (end - begin) * elements, 0.0f);
    ForEachWindow(shape, begin, end, [&](size_t out, const Window& window) {
      ForChannelGroups(shape.input.channels, [&]<size_t kWidth>(size_t c) {
        if (tiles) {
          SpreadToWinners<kWidth, false>(shape, window, winners + out + c, dy + out + c, dx + c);
        } else {
          SpreadToWinners<kWidth, true>(shape, window, winners + out + c, dy + out + c, dx + c);
        }
      });
    });
  });
}

void EigenBackend::AvgPoolForward(const PoolShape& shape, size_t batch, const float* x, float* y) {
  pool_.For(batch, Grain(shape), [=, &shape](size_t begin, size_t end, uint32_t) {
    const float share = 1.0f / static_cast<float>(shape.area());
    ForEachWindow(shape, begin, end, [&](size_t out, const Window& window) {
      ForChannelGroups(shape.input.channels, [&]<size_t kWidth>(size_t c) {
        std::array<float, kWidth> sum{};
        ForEachPixel(shape, window, [&](float, size_t at) {
          for (size_t i = 0; i < kWidth; ++i) sum[i] += x[at + c + i];
        });
        for (size_t i = 0; i < kWidth; ++i) y[out + c + i] = sum[i] * share;
      });
    });
  });
}

void EigenBackend::AvgPoolBackward(const PoolShape& shape, size_t batch, const float* dy,
                                   float* dx) {
  pool_.For(batch, Grain(shape), [=, &shape](size_t begin, size_t end, uint32_t) {
    const size_t elements = shape.input.elements();
    const float share = 1.0f / static_cast<float>(shape.area());
    std::fill_n(dx + begin * elements, (end - begin) * elements, 0.0f);
    ForEachWindow(shape, begin, end, [&](size_t out, const Window& window) {
      ForChannelGroups(shape.input.channels, [&]<size_t kWidth>(size_t c) {
        std::array<float, kWidth> slope;
        for (size_t i = 0; i < kWidth; ++i) slope[i] = dy[out + c + i] * share;
        ForEachPixel(shape, window, [&](float, size_t at) {
          for (size_t i = 0; i < kWidth; ++i) dx[at + c + i] += slope[i];
        });
      });
    });
  });
}

}  // namespace leeway
