// The common part of the dense encodings. Values are written in independent groups of 256, so any
// group can be read without the others. A Format is a struct that encodes one group of 0 < n <= 256
// values; only the last group of a block is short. It has:
//   kEncoding, kName
//   kLimit      bits of the largest magnitude that Encode() takes; larger values are clamped to it
//   size_t Bytes(size_t n)
//   void Encode(const float* values, size_t n, uint32_t top, uint8_t* out, float* lost)
//               top: bits of the values' largest magnitude;
//               lost: nullptr, or gets values - decoded
//   void Decode(const uint8_t* bytes, size_t n, float* out)      any bytes give floats
//   bool Valid(const uint8_t* bytes, size_t n)                   whether the values are finite
// The source fixes the order of operations, and no result depends on how loops are vectorised. So
// the bits are the same with and without SIMD.
#pragma once

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/blocks.h"
#include "common/codec/codecs.h"
#include "common/update/loop.h"

namespace leeway {

inline constexpr size_t kGroup = BlockLayout::kGroupElements;
// The bits of the largest float.
inline constexpr uint32_t kFloatMax = 0x7f7fffff;

// Returns the bits of the largest magnitude. For finite floats the order of these bits is the
// order of the magnitudes.
inline uint32_t TopMagnitude(const float* values, size_t count) {
  uint32_t top = 0;
  for (size_t i = 0; i < count; ++i) {
    top = std::max(top, std::bit_cast<uint32_t>(values[i]) & 0x7fffffffu);
  }
  return top;
}

// Sets out = values + residual and returns the TopMagnitude() of the sums. `out` may be one of the
// inputs.
inline uint32_t AddResidual(const float* values, const float* residual, size_t count, float* out) {
  uint32_t top = 0;
  LEEWAY_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) {
    out[i] = values[i] + residual[i];
    top = std::max(top, std::bit_cast<uint32_t>(out[i]) & 0x7fffffffu);
  }
  return top;
}

// Copies the values to `out`. The bits `limit` stand for the largest magnitude allowed. Larger
// magnitudes and NaN are replaced with this magnitude.
inline void Hold(const float* values, size_t count, uint32_t limit, float* out) {
  LEEWAY_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(values[i]);
    out[i] = std::bit_cast<float>(std::min(bits & 0x7fffffffu, limit) | (bits & 0x80000000u));
  }
}

// Returns the number of bytes that encode `count` values, which begin at a group's start.
template <typename Format>
size_t GroupBytes(size_t count) {
  const size_t rest = count % kGroup;
  return count / kGroup * Format::Bytes(kGroup) + (rest == 0 ? 0 : Format::Bytes(rest));
}

template <typename Format>
class GroupCodec final : public Codec {
 public:
  v1::Encoding encoding() const override { return Format::kEncoding; }
  size_t MaxBytes(size_t count) const override { return GroupBytes<Format>(count); }

  size_t Encode(std::span<const float> values, std::span<float> residual,
                std::span<uint8_t> out) const override {
    uint8_t* target = out.data();
    for (size_t begin = 0; begin < values.size(); begin += kGroup) {
      const size_t n = std::min(kGroup, values.size() - begin);
      EncodeGroup(values.data() + begin, n, target,
                  residual.empty() ? nullptr : residual.data() + begin);
      target += Format::Bytes(n);
    }
    return target - out.data();
  }

 private:
  static void EncodeGroup(const float* values, size_t n, uint8_t* out, float* residual) {
    alignas(64) float sum[kGroup];
    uint32_t top;
    if (residual == nullptr) {
      top = TopMagnitude(values, n);
    } else {
      top = AddResidual(values, residual, n, sum);
      values = sum;
    }
    if (top > Format::kLimit) {
      Hold(values, n, Format::kLimit, sum);
      values = sum;
      top = Format::kLimit;
    }
    Format::Encode(values, n, top, out, residual);
  }
};

template <typename Format>
class GroupValues final : public EncodedValues {
 public:
  static OpenedValues Open(Pieces bytes, size_t count) {
    if (bytes.size() != GroupBytes<Format>(count)) {
      return absl::InvalidArgumentError(
          absl::StrCat("payload: ", count, " values in ", Format::kName, " need ",
                       GroupBytes<Format>(count), " bytes, but the payload has ", bytes.size()));
    }
    auto values = std::make_shared<GroupValues>(std::move(bytes), count);
    for (size_t begin = 0; begin < count; begin += kChunk) {
      if (!values->ValidFrom(begin)) {
        return absl::InvalidArgumentError(
            absl::StrCat("payload: at or after value ", begin, ", a value or scale in ",
                         Format::kName, " is not finite, or an unused bit is not 0"));
      }
    }
    return OpenedValues(std::move(values));
  }

  GroupValues(Pieces bytes, size_t count) : bytes_(std::move(bytes)), count_(count) {}

  size_t size() const override { return count_; }

  void Read(size_t offset, std::span<float> out) const override {
    while (!out.empty()) {
      const size_t n = std::min(out.size(), kChunk - offset % kGroup);
      ReadChunk(offset, out.first(n));
      offset += n;
      out = out.subspan(n);
    }
  }

  void AddTo(std::span<float> out) const override {
    alignas(64) float chunk[kChunk];
    for (size_t begin = 0; begin < out.size(); begin += kChunk) {
      const size_t n = std::min(kChunk, out.size() - begin);
      ReadChunk(begin, {chunk, n});
      float* target = out.data() + begin;
      for (size_t i = 0; i < n; ++i) target[i] += chunk[i];
    }
  }

 private:
  // The number of values that are decoded together. It is a whole number of groups.
  static constexpr size_t kChunk = 4 * kGroup;

  // Returns the bytes of the groups that contain the `n` values from `begin` on. `begin` is the
  // start of a group.
  const uint8_t* BytesOf(size_t begin, size_t n, uint8_t* scratch) const {
    // Include all of the last group, because the size of a group determines how its bytes are read.
    const size_t end = std::min(count_, (begin + n + kGroup - 1) / kGroup * kGroup);
    const size_t first = begin / kGroup * Format::Bytes(kGroup);
    return bytes_.At(first, GroupBytes<Format>(end) - first, scratch);
  }

  bool ValidFrom(size_t begin) const {
    uint8_t scratch[kChunk * sizeof(float)];
    const size_t n = std::min(kChunk, count_ - begin);
    const uint8_t* bytes = BytesOf(begin, n, scratch);
    bool valid = true;
    for (size_t done = 0; done < n; done += kGroup) {
      const size_t size = std::min(kGroup, n - done);
      valid &= Format::Valid(bytes, size);
      bytes += Format::Bytes(size);
    }
    return valid;
  }

  // Reads out.size() elements from `offset` on. All of them are within kChunk values of the start
  // of the group that contains `offset`.
  void ReadChunk(size_t offset, std::span<float> out) const {
    uint8_t scratch[kChunk * sizeof(float)];
    size_t begin = offset / kGroup * kGroup;
    const size_t end = offset + out.size();
    const uint8_t* bytes = BytesOf(begin, end - begin, scratch);
    for (; begin < end; begin += kGroup) {
      const size_t n = std::min(kGroup, count_ - begin);
      if (begin >= offset && begin + n <= end) {
        Format::Decode(bytes, n, out.data() + (begin - offset));
      } else {
        ReadPart(bytes, begin, n, offset, out);
      }
      bytes += Format::Bytes(n);
    }
  }

  // Decodes one group, and copies the part of it that `out` needs.
  static void ReadPart(const uint8_t* bytes, size_t begin, size_t n, size_t offset,
                       std::span<float> out) {
    alignas(64) float group[kGroup];
    Format::Decode(bytes, n, group);
    const size_t first = std::max(begin, offset);
    const size_t last = std::min(begin + n, offset + out.size());
    std::copy(group + (first - begin), group + (last - begin), out.data() + (first - offset));
  }

  const Pieces bytes_;
  const size_t count_;
};

}  // namespace leeway
