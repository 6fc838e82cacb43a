// Pooling. Channels lie next to each other, so that every loop over them is a vector loop.
#include <algorithm>
#include <array>
#include <cstdint>

#include "worker/compute/eigen/eigen_backend.h"
#include "worker/compute/eigen/vectors.h"

namespace leeway {
namespace {

// Calls visit(output index, input index) with the first channel's indices of every window of
// examples [begin, end).
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
  float place = 0;
  for (size_t row = 0; row < shape.size; ++row) {
    const size_t line = row * shape.input.width;
    for (size_t column = 0; column < shape.size; ++column, place += 1) {
      visit(place, (line + column) * shape.input.channels);
    }
  }
}

size_t Grain(const PoolShape& shape) {
  return 1 + (1 << 15) / std::max<size_t>(1, shape.input.elements());
}

template <size_t kWidth>
void MaxOfWindow(const PoolShape& shape, const float* x, float* winners, float* y) {
  std::array<float, kWidth> best;
  std::array<float, kWidth> winner{};
  std::copy_n(x, kWidth, best.begin());
  ForEachPixel(shape, [&](float place, size_t offset) {
    const float* pixel = x + offset;
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
void SpreadToWinners(const PoolShape& shape, const float* winners, const float* dy, float* dx) {
  std::array<float, kWidth> winner;
  std::array<float, kWidth> slope;
  std::copy_n(winners, kWidth, winner.begin());
  std::copy_n(dy, kWidth, slope.begin());
  ForEachPixel(shape, [&](float place, size_t offset) {
    float* pixel = dx + offset;
    for (size_t c = 0; c < kWidth; ++c) {
      const float share = winner[c] == place ? slope[c] : 0.0f;
      pixel[c] = kOverlap ? pixel[c] + share : share;
    }
  });
}

// Whether each input pixel is in exactly one window, so that gradients are written instead of
// added.
bool Tiles(const PoolShape& shape) {
  return shape.stride == shape.size && shape.input.height % shape.size == 0 &&
         shape.input.width % shape.size == 0;
}

}  // namespace

void EigenBackend::MaxPoolForward(const PoolShape& shape, size_t batch, const float* x,
                                  float* winners, float* y) {
  pool_.For(batch, Grain(shape), [=, &shape](size_t begin, size_t end, uint32_t) {
    ForEachWindow(shape, begin, end, [&](size_t out, size_t in) {
      ForChannelGroups(shape.input.channels, [&]<size_t kWidth>(size_t c) {
        MaxOfWindow<kWidth>(shape, x + in + c, winners == nullptr ? nullptr : winners + out + c,
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
    ForEachWindow(shape, begin, end, [&](size_t out, size_t in) {
      ForChannelGroups(shape.input.channels, [&]<size_t kWidth>(size_t c) {
        if (tiles) {
          SpreadToWinners<kWidth, false>(shape, winners + out + c, dy + out + c, dx + in + c);
        } else {
          SpreadToWinners<kWidth, true>(shape, winners + out + c, dy + out + c, dx + in + c);
        }
      });
    });
  });
}

void EigenBackend::AvgPoolForward(const PoolShape& shape, size_t batch, const float* x, float* y) {
  pool_.For(batch, Grain(shape), [=, &shape](size_t begin, size_t end, uint32_t) {
    const float share = 1.0f / static_cast<float>(shape.size * shape.size);
    ForEachWindow(shape, begin, end, [&](size_t out, size_t in) {
      ForChannelGroups(shape.input.channels, [&]<size_t kWidth>(size_t c) {
        std::array<float, kWidth> sum{};
        ForEachPixel(shape, [&](float, size_t offset) {
          for (size_t i = 0; i < kWidth; ++i) sum[i] += x[in + c + offset + i];
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
    const float share = 1.0f / static_cast<float>(shape.size * shape.size);
    std::fill_n(dx + begin * elements, (end - begin) * elements, 0.0f);
    ForEachWindow(shape, begin, end, [&](size_t out, size_t in) {
      ForChannelGroups(shape.input.channels, [&]<size_t kWidth>(size_t c) {
        std::array<float, kWidth> slope;
        for (size_t i = 0; i < kWidth; ++i) slope[i] = dy[out + c + i] * share;
        ForEachPixel(shape, [&](float, size_t offset) {
          for (size_t i = 0; i < kWidth; ++i) dx[in + c + offset + i] += slope[i];
        });
      });
    });
  });
}

}  // namespace leeway
