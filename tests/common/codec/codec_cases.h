// Shared by the tests of the codecs: every codec, and values that are hard to encode.
#pragma once

#include <cfloat>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/encoded.h"
#include "common/philox.h"
#include "tests/same_bits.h"

namespace leeway::testing {

struct CodecCase {
  std::string name;
  std::shared_ptr<const Codec> codec;
};

inline std::vector<CodecCase> AllCodecs() {
  std::vector<v1::Codec> configs(9);
  configs[0].mutable_none();
  configs[1].mutable_bf16();
  configs[2].mutable_fp16();
  configs[3].mutable_int8();
  configs[4].mutable_sign();
  configs[5].mutable_top_k()->set_share(0.01);
  configs[6].mutable_top_k()->set_share(0.3);
  configs[7].mutable_top_k()->set_share(1);
  configs[8].mutable_top_k()->set_share(1e-9);
  std::vector<CodecCase> cases;
  for (const v1::Codec& config : configs) {
    cases.push_back({config.ShortDebugString(), MakeCodec(config).value()});
  }
  return cases;
}

inline std::vector<float> NormalValues(size_t count, uint64_t seed, double size = 1) {
  RandomStream random(seed, RandomPurpose::kGenerate);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(size * random.Normal());
  return values;
}

// Returns floats with any finite bit pattern.
inline std::vector<float> WildValues(size_t count, uint64_t seed) {
  RandomStream random(seed, RandomPurpose::kGenerate);
  std::vector<float> values(count);
  for (float& value : values) {
    uint32_t bits = random.NextU32();
    if ((bits & 0x7f800000u) == 0x7f800000u) bits &= ~0x00800000u;
    std::memcpy(&value, &bits, sizeof(value));
  }
  return values;
}

inline std::vector<std::vector<float>> HardInputs(size_t count) {
  std::vector<std::vector<float>> inputs = {NormalValues(count, 1),
                                            NormalValues(count, 2, 1e-6),
                                            NormalValues(count, 3, 1e-40),
                                            NormalValues(count, 4, 1e37),
                                            WildValues(count, 5),
                                            std::vector<float>(count, 0.0f),
                                            std::vector<float>(count, -0.0f),
                                            std::vector<float>(count, 1.5f),
                                            std::vector<float>(count, FLT_MAX)};
  std::vector<float> one(count, 0.0f);
  if (count > 0) one[count / 2] = -FLT_MAX;
  inputs.push_back(one);
  return inputs;
}

inline std::vector<uint8_t> Encode(const Codec& codec, std::span<const float> values,
                                   std::span<float> residual) {
  std::vector<uint8_t> bytes(codec.MaxBytes(values.size()));
  bytes.resize(codec.Encode(values, residual, bytes));
  return bytes;
}

}  // namespace leeway::testing
