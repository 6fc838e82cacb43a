// Pooling. The channels of a pixel are adjacent, so every loop over them is a vector loop.
#include <algorithm>
#include <cstdint>

#include "worker/compute/eigen/eigen_backend.h"
#include "worker/compute/eigen/lanes.h"

namespace leeway {
namespace {

// The positions of a window that are inside the image. Also the index of the input element at
// position (0, 0), which may be before the image.
struct Window {
  size_t row_begin = 0, row_end = 0;
  size_t column_begin = 0, column_end = 0;
  int64_t first = 0;
};

// Computes which positions [begin, end) of a window are inside [0, side). The window has `size`
// positions and begins at `first`.
void Clip(int64_t first, size_t size, size_t side, size_t& begin, size_t& end) {
  begin = static_cast<size_t>(std::max<int64_t>(0, -first));
  end =
      static_cast<size_t>(std::min(static_cast<int64_t>(size), static_cast<int64_t>(side) - first));
}

// Calls visit(output index, window) for every window of the examples [begin, end). The indices are
// those of the first channel.
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

// Calls visit(position, input index) for every pixel of a window. If kSide is not 0, all windows
// have kSide rows and columns, and the compiler can unroll the loops.
template <uint32_t kSide, typename Visit>
void ForEachPixel(const PoolShape& shape, const Window& window, Visit visit) {
  const size_t row_begin = kSide > 0 ? 0 : window.row_begin;
  const size_t row_end = kSide > 0 ? kSide : window.row_end;
  const size_t column_begin = kSide > 0 ? 0 : window.column_begin;
  const size_t column_end = kSide > 0 ? kSide : window.column_end;
  for (size_t row = row_begin; row < row_end; ++row) {
    const size_t offset = (row * shape.input.width + column_begin) * shape.input.channels;
    auto at = static_cast<size_t>(window.first + static_cast<int64_t>(offset));
    for (size_t column = column_begin; column < column_end; ++column, at += shape.input.channels) {
      visit(static_cast<float>(row * (kSide > 0 ? kSide : shape.columns()) + column), at);
    }
  }
}

// Calls run.template operator()<side>() with the side of the windows if that side is a common one,
// otherwise with 0.
template <typename Run>
void WithSide(const PoolShape& shape, Run run) {
  const bool is_square = shape.padding == 0 && shape.size == shape.columns();
  if (is_square && shape.size == 2) return run.template operator()<2>();
  if (is_square && shape.size == 3) return run.template operator()<3>();
  run.template operator()<0>();
}

size_t PoolGrain(const PoolShape& shape) {
  return 1 + (1 << 15) / std::max<size_t>(1, shape.input.elements());
}

template <uint32_t kSide, size_t kWidth>
void MaxOfWindow(const PoolShape& shape, const Window& window, const float* x, float* winners,
                 float* y) {
  const auto first =
      static_cast<float>(kSide > 0 ? 0 : window.row_begin * shape.columns() + window.column_begin);
  Lanes<kWidth> best{};
  Lanes<kWidth> winner{};
  ForEachPixel<kSide>(shape, window, [&](float place, size_t at) {
    const Lanes<kWidth> pixel = LoadLanes<kWidth>(x + at);
    const Lanes<kWidth> here = Lanes<kWidth>{} + place;
    // A NaN wins and stays. The first position always wins, because there is no earlier value.
    const auto stays = (pixel <= best) | (best != best);
    winner = place == first ? here : stays ? winner : here;
    best = place == first ? pixel : stays ? best : pixel;
  });
  StoreLanes(best, y);
  if (winners != nullptr) StoreLanes(winner, winners);
}

// Adds a window's gradients to the gradients of its pixels. If kOverlap is false, no other window
// contains these pixels, so the gradients are written.
template <uint32_t kSide, size_t kWidth, bool kOverlap>
void SpreadToWinners(const PoolShape& shape, const Window& window, const float* winners,
                     const float* dy, float* dx) {
  const Lanes<kWidth> winner = LoadLanes<kWidth>(winners);
  const Lanes<kWidth> slope = LoadLanes<kWidth>(dy);
  ForEachPixel<kSide>(shape, window, [&](float place, size_t at) {
    const Lanes<kWidth> share = winner == place ? slope : Lanes<kWidth>{};
    StoreLanes(kOverlap ? LoadLanes<kWidth>(dx + at) + share : share, dx + at);
  });
}

// Returns true if each input pixel is in exactly one window, so that gradients are written and not
// added.
bool Tiles(const PoolShape& shape) {
  return shape.padding == 0 && shape.stride == shape.size && shape.stride == shape.columns() &&
         shape.input.height % shape.size == 0 && shape.input.width % shape.size == 0;
}

}  // namespace

void EigenBackend::MaxPoolForward(const PoolShape& shape, size_t batch, const float* x,
                                  float* winners, float* y) {
  WithSide(shape, [&]<uint32_t kSide>() {
    pool_.For(batch, PoolGrain(shape), [=, &shape](size_t begin, size_t end, uint32_t) {
      ForEachWindow(shape, begin, end, [&](size_t out, const Window& window) {
        ForLanes(shape.input.channels, [&]<size_t kWidth>(size_t c) {
          MaxOfWindow<kSide, kWidth>(shape, window, x + c,
                                     winners == nullptr ? nullptr : winners + out + c, y + out + c);
        });
      });
    });
  });
}

void EigenBackend::MaxPoolBackward(const PoolShape& shape, size_t batch, const float* winners,
                                   const float* dy, float* dx) {
  const bool tiles = Tiles(shape);
  WithSide(shape, [&]<uint32_t kSide>() {
    pool_.For(batch, PoolGrain(shape), [=, &shape](size_t begin, size_t end, uint32_t) {
      const size_t elements = shape.input.elements();
      if (!tiles) std::fill_n(dx + begin * elements, (end - begin) * elements, 0.0f);
      ForEachWindow(shape, begin, end, [&](size_t out, const Window& window) {
        ForLanes(shape.input.channels, [&]<size_t kWidth>(size_t c) {
          const float* const won = winners + out + c;
          if (tiles) {
            SpreadToWinners<kSide, kWidth, false>(shape, window, won, dy + out + c, dx + c);
          } else {
            SpreadToWinners<kSide, kWidth, true>(shape, window, won, dy + out + c, dx + c);
          }
        });
      });
    });
  });
}

void EigenBackend::AvgPoolForward(const PoolShape& shape, size_t batch, const float* x, float* y) {
  pool_.For(batch, PoolGrain(shape), [=, &shape](size_t begin, size_t end, uint32_t) {
    const float share = 1.0f / static_cast<float>(shape.area());
    ForEachWindow(shape, begin, end, [&](size_t out, const Window& window) {
      ForLanes(shape.input.channels, [&]<size_t kWidth>(size_t c) {
        Lanes<kWidth> sum{};
        ForEachPixel<0>(shape, window,
                        [&](float, size_t at) { sum += LoadLanes<kWidth>(x + at + c); });
        StoreLanes(sum * share, y + out + c);
      });
    });
  });
}

void EigenBackend::AvgPoolBackward(const PoolShape& shape, size_t batch, const float* dy,
                                   float* dx) {
  pool_.For(batch, PoolGrain(shape), [=, &shape](size_t begin, size_t end, uint32_t) {
    const size_t elements = shape.input.elements();
    const float share = 1.0f / static_cast<float>(shape.area());
    std::fill_n(dx + begin * elements, (end - begin) * elements, 0.0f);
    ForEachWindow(shape, begin, end, [&](size_t out, const Window& window) {
      ForLanes(shape.input.channels, [&]<size_t kWidth>(size_t c) {
        const Lanes<kWidth> slope = LoadLanes<kWidth>(dy + out + c) * share;
        ForEachPixel<0>(shape, window, [&](float, size_t at) {
          StoreLanes(LoadLanes<kWidth>(dx + at + c) + slope, dx + at + c);
        });
      });
    });
  });
}

}  // namespace leeway
