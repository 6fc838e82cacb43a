// Contributions with drawn values, for the tests of updates and of their sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/philox.h"
#include "common/update/combine.h"
#include "common/wire/payload.h"

namespace leeway::testing {

inline std::vector<float> Draw(size_t count, uint64_t key) {
  RandomStream stream(11, RandomPurpose::kInitialize, {key});
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(stream.Normal());
  return values;
}

// k contributions of `count` floats, each whole or in pieces, as the network might leave it.
struct Contributions {
  Contributions(size_t k, size_t count, bool split) {
    for (size_t i = 0; i < k; ++i) {
      values.push_back(Draw(count, i + 1));
      payloads.push_back(split ? Split(values.back(), i) : FloatPayload::Of(values.back()));
      examples.push_back(10 + 7 * i);
    }
    for (const FloatPayload& payload : payloads) pointers.push_back(&payload);
    coefficients = MeanCoefficients(examples);
  }

  // The pieces are apart from each other, with bytes of NaN between them.
  static FloatPayload Split(const std::vector<float>& values, size_t seed) {
    constexpr size_t kGap = 9;
    const size_t bytes = values.size() * sizeof(float), longest = 1000 + 513 * seed;
    const size_t gaps = (bytes / longest + 2) * kGap;
    auto memory = std::make_shared<std::vector<uint8_t>>(bytes + gaps, 0xff);
    const auto* from = reinterpret_cast<const uint8_t*>(values.data());
    uint8_t* to = memory->data() + 1 + seed % 3;
    FloatPayload::PieceList pieces;
    for (size_t begin = 0; begin < bytes;) {
      const size_t size = std::min(bytes - begin, longest);
      std::copy_n(from + begin, size, to);
      pieces.push_back(FloatPayload::Piece(to, size));
      begin += size;
      to += size + kGap;
    }
    return FloatPayload(memory, std::move(pieces));
  }

  std::vector<std::vector<float>> values;
  std::vector<FloatPayload> payloads;
  std::vector<const FloatPayload*> pointers;
  std::vector<uint64_t> examples;
  std::vector<float> coefficients;
};

}  // namespace leeway::testing
