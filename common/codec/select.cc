#include "common/codec/select.h"

#include <algorithm>
#include <bit>
#include <memory>

namespace leeway {
namespace {

using Words = std::unique_ptr<uint32_t[]>;

// Returns the bits of the magnitude. For finite floats the order of these bits is the order of the
// magnitudes.
uint32_t Magnitude(float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffffu; }

// Returns the k-th largest of `count` words below 2^31, by radix selection from the top bits down,
// in linear time. Changes the words.
uint32_t KthLargest(uint32_t* words, size_t count, size_t k) {
  constexpr int kDigit = 11;
  uint32_t found = 0;
  for (const int shift : {20, 10, 0}) {
    const uint32_t mask = shift == 20 ? (1u << kDigit) - 1 : (1u << (kDigit - 1)) - 1;
    uint32_t histogram[1 << kDigit] = {};
    for (size_t i = 0; i < count; ++i) ++histogram[(words[i] >> shift) & mask];
    uint32_t digit = mask;
    while (histogram[digit] < k) k -= histogram[digit--];
    found |= digit << shift;
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i) {
      const uint32_t word = words[i];
      words[kept] = word;
      kept += ((word >> shift) & mask) == digit;
    }
    count = kept;
  }
  return found;
}

// Returns a bound that at least k magnitudes reach, and only a few more than k. Arranges the values
// in rows, takes the maximum of each column, and returns the k-th largest maximum. Returns 0 if k
// is so large that the bound would save no work.
uint32_t LowerBound(std::span<const float> values, size_t k) {
  constexpr size_t kRowsMax = 32, kColumnsPerEntry = 3;
  const size_t rows = std::min(kRowsMax, values.size() / (kColumnsPerEntry * k));
  if (rows < 2) return 0;
  const size_t columns = values.size() / rows;
  const Words top = std::make_unique<uint32_t[]>(columns);
  for (size_t row = 0; row < rows; ++row) {
    const float* values_of_row = values.data() + row * columns;
    for (size_t i = 0; i < columns; ++i) top[i] = std::max(top[i], Magnitude(values_of_row[i]));
  }
  return KthLargest(top.get(), columns, k);
}

// Returns the indices of the values whose magnitude is at least `bound`.
std::vector<uint32_t> Reaching(std::span<const float> values, uint32_t bound) {
  constexpr size_t kStride = 16;
  std::vector<uint32_t> found;
  const auto look_at = [&](size_t i) {
    if (Magnitude(values[i]) >= bound) found.push_back(static_cast<uint32_t>(i));
  };
  size_t begin = 0;
  for (; begin + kStride <= values.size(); begin += kStride) {
    uint32_t top = 0;
    for (size_t i = 0; i < kStride; ++i) top = std::max(top, Magnitude(values[begin + i]));
    if (top < bound) continue;
    for (size_t i = 0; i < kStride; ++i) look_at(begin + i);
  }
  for (; begin < values.size(); ++begin) look_at(begin);
  return found;
}

}  // namespace

std::vector<uint32_t> LargestMagnitudes(std::span<const float> values, size_t k) {
  std::vector<uint32_t> found = Reaching(values, LowerBound(values, k));
  const Words magnitudes = std::make_unique_for_overwrite<uint32_t[]>(found.size());
  for (size_t i = 0; i < found.size(); ++i) magnitudes[i] = Magnitude(values[found[i]]);
  const uint32_t least = KthLargest(magnitudes.get(), found.size(), k);
  size_t equals = k;
  for (const uint32_t index : found) equals -= Magnitude(values[index]) > least;
  std::erase_if(found, [&](uint32_t index) {
    const uint32_t magnitude = Magnitude(values[index]);
    if (magnitude != least) return magnitude < least;
    return equals == 0 || equals-- == 0;
  });
  return found;
}

}  // namespace leeway
