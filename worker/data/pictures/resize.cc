#include "worker/data/pictures/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace leeway {
namespace {

// The pixels along an axis whose weighted sum is one new pixel.
struct Taps {
  uint32_t first = 0;
  std::vector<float> weights;
};

// Returns the taps of `count` new pixels in the middle of an axis of `from` pixels that is scaled
// to `to` pixels.
std::vector<Taps> TapsOf(uint32_t from, uint32_t to, uint32_t count) {
  const double scale = static_cast<double>(from) / to;
  const double support = std::max(scale, 1.0);
  const uint32_t cropped = (to - count) / 2;
  std::vector<Taps> all(count);
  for (uint32_t i = 0; i < count; ++i) {
    const double centre = (cropped + i + 0.5) * scale;
    const double low = std::max(centre - support, 0.0);
    const double high = std::min(centre + support, static_cast<double>(from));
    const auto begin = std::min(static_cast<uint32_t>(low + 0.5), from - 1);
    const auto end = std::clamp(static_cast<uint32_t>(high + 0.5), begin + 1, from);
    Taps& taps = all[i];
    taps.first = begin;
    double sum = 0;
    for (uint32_t k = begin; k < end; ++k) {
      const double weight = std::max(1 - std::abs((k + 0.5 - centre) / support), 0.0);
      taps.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    // If only a border pixel is under the triangle, its weight may be 0.
    if (sum <= 0) {
      std::fill(taps.weights.begin(), taps.weights.end(), 1.0f);
      sum = static_cast<double>(taps.weights.size());
    }
    for (float& weight : taps.weights) weight = static_cast<float>(weight / sum);
  }
  return all;
}

// Writes a row of the picture, scaled and cropped along the row, to out [width][3].
void ScaleRow(const uint8_t* row, const std::vector<Taps>& columns, float* out) {
  for (const Taps& taps : columns) {
    float sums[kPictureChannels] = {};
    const uint8_t* pixel = row + taps.first * kPictureChannels;
    for (const float weight : taps.weights) {
      for (size_t c = 0; c < kPictureChannels; ++c) sums[c] += weight * pixel[c];
      pixel += kPictureChannels;
    }
    out = std::copy_n(sums, kPictureChannels, out);
  }
}

uint8_t Rounded(float value) {
  return static_cast<uint8_t>(std::clamp(value + 0.5f, 0.0f, 255.0f));
}

}  // namespace

CoveringSize Covering(uint32_t picture_height, uint32_t picture_width, uint32_t height,
                      uint32_t width) {
  // Compares height / picture_height with width / picture_width.
  const uint64_t by_height = uint64_t{height} * picture_width;
  const uint64_t by_width = uint64_t{width} * picture_height;
  const auto rounded = [](uint64_t a, uint64_t b) {
    return static_cast<uint32_t>((a + b / 2) / b);
  };
  if (by_height >= by_width) {
    return {height, std::max(width, rounded(by_height, picture_height))};
  }
  return {std::max(height, rounded(by_width, picture_width)), width};
}

void ScaleAndCrop(const Picture& picture, uint32_t height, uint32_t width, uint8_t* out) {
  const CoveringSize size = Covering(picture.height, picture.width, height, width);
  const std::vector<Taps> rows = TapsOf(picture.height, size.height, height);
  const std::vector<Taps> columns = TapsOf(picture.width, size.width, width);
  const size_t stride = size_t{picture.width} * kPictureChannels,
               row_size = size_t{width} * kPictureChannels;
  size_t held = 0;
  for (const Taps& taps : rows) held = std::max(held, taps.weights.size());
  // The rows that are already scaled. Row r is at index r mod held.
  std::vector<float> scaled(held * row_size), sums(row_size);
  uint32_t next = rows.front().first;
  for (const Taps& taps : rows) {
    const auto end = taps.first + static_cast<uint32_t>(taps.weights.size());
    for (next = std::max(next, taps.first); next < end; ++next) {
      ScaleRow(picture.pixels.data() + next * stride, columns, &scaled[next % held * row_size]);
    }
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (size_t k = 0; k < taps.weights.size(); ++k) {
      const float* const row = &scaled[(taps.first + k) % held * row_size];
      for (size_t i = 0; i < row_size; ++i) sums[i] += taps.weights[k] * row[i];
    }
    out = std::transform(sums.begin(), sums.end(), out, Rounded);
  }
}

}  // namespace leeway
