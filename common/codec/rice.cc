#include "common/codec/rice.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

class BitWriter {
 public:
  explicit BitWriter(uint8_t* out) : out_(out), start_(out) {}

  // Appends the low `count` <= 32 bits; the other bits must be 0.
  void Put(uint64_t bits, uint32_t count) {
    waiting_ |= bits << used_;
    used_ += count;
    if (used_ < 32) return;
    std::memcpy(out_, &waiting_, 4);
    out_ += 4;
    waiting_ >>= 32;
    used_ -= 32;
  }

  // Writes the remaining bits, and returns the total number of bytes.
  size_t Finish() {
    const size_t rest = (used_ + 7) / 8;
    std::memcpy(out_, &waiting_, rest);
    return out_ + rest - start_;
  }

 private:
  uint8_t* out_;
  const uint8_t* const start_;
  uint64_t waiting_ = 0;
  uint32_t used_ = 0;
};

// Returns at least 57 bits from the bit `position` on. Bits after the end of `bytes` are zeros.
uint64_t Window(std::span<const uint8_t> bytes, uint64_t position) {
  const size_t first = position / 8;
  uint64_t word = 0;
  if (first + 8 <= bytes.size()) {
    std::memcpy(&word, bytes.data() + first, 8);
  } else if (first < bytes.size()) {
    std::memcpy(&word, bytes.data() + first, bytes.size() - first);
  }
  return word >> (position % 8);
}

uint64_t Bits(std::span<const uint32_t> indices, uint32_t parameter) {
  uint64_t bits = indices.size() * (uint64_t{1} + parameter);
  uint32_t next = 0;
  for (const uint32_t index : indices) {
    bits += (index - next) >> parameter;
    next = index + 1;
  }
  return bits;
}

}  // namespace

uint32_t UsualRiceParameter(size_t n, size_t k) {
  // Golomb's rule: choose a power of two near ln 2 times the mean gap.
  const size_t middle = n * 7 / (k * 10);
  return middle == 0 ? 0 : static_cast<uint32_t>(std::bit_width(middle)) - 1;
}

uint32_t BestRiceParameter(std::span<const uint32_t> indices, size_t n) {
  uint32_t parameter = UsualRiceParameter(n, indices.size());
  uint64_t bits = Bits(indices, parameter);
  for (const int step : {-1, +1}) {
    while (parameter + step <= kRiceParameterMax) {  // -1 wraps around to a larger value.
      const uint64_t other = Bits(indices, parameter + step);
      if (other >= bits) break;
      bits = other;
      parameter += step;
    }
  }
  return parameter;
}

size_t RiceBytesMax(size_t n, size_t k, uint32_t parameter) {
  return (k * (1 + parameter) + (n >> parameter) + 7) / 8;
}

size_t WriteRice(std::span<const uint32_t> indices, uint32_t parameter, uint8_t* out) {
  BitWriter writer(out);
  const uint32_t mask = (uint32_t{1} << parameter) - 1;
  uint32_t next = 0;
  for (const uint32_t index : indices) {
    const uint32_t gap = index - next;
    uint32_t ones = gap >> parameter;
    for (; ones >= 31; ones -= 31) writer.Put(0x7fffffffu, 31);
    writer.Put((uint64_t{1} << ones) - 1, ones + 1);
    writer.Put(gap & mask, parameter);
    next = index + 1;
  }
  return writer.Finish();
}

absl::StatusOr<size_t> ReadRice(std::span<const uint8_t> bytes, uint32_t parameter, size_t n,
                                std::span<uint32_t> indices) {
  const uint64_t end = uint64_t{bytes.size()} * 8;
  const uint32_t mask = (uint32_t{1} << parameter) - 1;
  uint64_t position = 0, next = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    constexpr uint32_t kSure = 56;
    uint64_t ones = 0;
    uint32_t run = std::countr_one(Window(bytes, position));
    for (; run >= kSure && position < end; run = std::countr_one(Window(bytes, position))) {
      ones += kSure;
      position += kSure;
    }
    ones += run;
    position += run + 1;
    const uint64_t gap = (ones << parameter) | (Window(bytes, position) & mask);
    position += parameter;
    next += gap;
    if (position > end) {
      return absl::InvalidArgumentError(
          absl::StrCat("the indices are truncated after the first ", i));
    }
    if (next >= n) {
      return absl::InvalidArgumentError(
          absl::StrCat("index ", next, " is out of range: there are ", n, " values"));
    }
    indices[i] = static_cast<uint32_t>(next++);
  }
  const size_t used = (position + 7) / 8;
  if (position % 8 != 0 && bytes[used - 1] >> (position % 8) != 0) {
    return absl::InvalidArgumentError("the padding after the last index is not zero");
  }
  return used;
}

}  // namespace leeway
