// Payloads in every encoding: as a stranger's bytes, and as floats that our own codecs encode.
#include <cmath>
#include <memory>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/encoded.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/same_bits.h"

namespace leeway::codec {
namespace {

constexpr uint32_t kCountMax = 1200;

using testing::SameBits;

// Opens the bytes in pieces of `piece` bytes (0: one piece), each in memory of its own, so that
// reading beyond a piece is found.
std::shared_ptr<const EncodedValues> Open(v1::Encoding encoding, std::span<const uint8_t> bytes,
                                          size_t piece, size_t count) {
  auto memory = std::make_shared<std::vector<std::vector<uint8_t>>>();
  FloatPayload::PieceList pieces;
  for (size_t at = 0; at < bytes.size();) {
    const auto part =
        bytes.subspan(at, std::min(piece == 0 ? bytes.size() : piece, bytes.size() - at));
    memory->emplace_back(part.begin(), part.end());
    at += part.size();
  }
  for (const auto& part : *memory) pieces.emplace_back(part);
  const auto opened = EncodedValues::Open(encoding, memory, std::move(pieces), count);
  if (opened.ok()) return *opened;
  Promise(absl::IsInvalidArgument(opened.status()), "a bad payload is INVALID_ARGUMENT");
  return nullptr;
}

std::vector<float> ReadAll(const EncodedValues& values) {
  std::vector<float> all(values.size());
  values.Read(0, all);
  for (const float value : all) Promise(std::isfinite(value), "decoded values are finite");
  return all;
}

// All ways of reading must give the same values.
void PromiseOneReading(const EncodedValues& values, const std::vector<float>& all,
                       FuzzInput& input) {
  for (int i = 0; i < 2; ++i) {
    const size_t begin = input.Short() % (all.size() + 1);
    const size_t count = input.Short() % (all.size() - begin + 1);
    std::vector<float> part(count);
    values.Read(begin, part);
    Promise(SameBits(part, {all.begin() + begin, all.begin() + begin + count}),
            "a part reads as it does in the whole");
  }
  std::vector<float> sum(all.size(), 1.0f);
  values.AddTo(sum);
  for (size_t i = 0; i < all.size(); ++i) Promise(sum[i] == 1.0f + all[i], "AddTo adds");
}

void DecodeStranger(FuzzInput input) {
  const auto encoding = static_cast<v1::Encoding>(input.Below(8));
  const size_t count = input.Short() % kCountMax;
  const size_t piece = input.Byte();
  const std::span<const uint8_t> places = input.Take(8);
  FuzzInput ranges(places.data(), places.size());
  const std::span<const uint8_t> bytes = input.Rest();
  const auto values = Open(encoding, bytes, piece, count);
  std::vector<float> whole(count, 7.0f);
  const absl::Status decoded = Decode(encoding, bytes, whole);
  Promise(decoded.ok() == (values != nullptr), "Decode takes what Open takes");
  if (values == nullptr) {
    Promise(SameBits(whole, std::vector<float>(count, 7.0f)), "a refused Decode leaves out as is");
    return;
  }
  Promise(values->size() == count, "a payload has the size asked for");
  const std::vector<float> all = ReadAll(*values);
  Promise(SameBits(all, whole), "Decode and Read agree");
  PromiseOneReading(*values, all, ranges);
}

std::unique_ptr<const Codec> CodecOf(FuzzInput& input) {
  v1::Codec config;
  switch (input.Below(6)) {
    case 0:
      config.mutable_none();
      break;
    case 1:
      config.mutable_bf16();
      break;
    case 2:
      config.mutable_fp16();
      break;
    case 3:
      config.mutable_int8();
      break;
    case 4:
      config.mutable_sign();
      break;
    default:
      config.mutable_top_k()->set_share((input.Byte() + 1) / 256.0);
      break;
  }
  return *MakeCodec(config);
}

std::vector<float> Floats(std::span<const uint8_t> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  for (float& value : values) value = std::isfinite(value) ? value : 0.0f;
  return values;
}

void EncodeOurs(FuzzInput input) {
  const std::unique_ptr<const Codec> codec = CodecOf(input);
  const size_t piece = input.Byte();
  const uint8_t repeat = input.Byte();
  const bool with_residual = input.Flag();
  std::vector<float> values = Floats(input.Rest());
  // A few bytes fill several groups of 256.
  for (int i = 0; i < repeat % 4 && !values.empty() && values.size() < kCountMax / 2; ++i) {
    values.insert(values.end(), values.rbegin(), values.rend());
  }
  if (values.empty()) return;
  std::vector<float> residual(with_residual ? values.size() : 0);
  for (size_t i = 0; i < residual.size(); ++i) residual[i] = values[values.size() - 1 - i] / 3;
  const std::vector<float> before = residual;
  std::vector<uint8_t> bytes(codec->MaxBytes(values.size()));
  const size_t written = codec->Encode(values, residual, bytes);
  Promise(written <= bytes.size(), "Encode writes at most MaxBytes");
  bytes.resize(written);
  const auto opened = Open(codec->encoding(), bytes, piece, values.size());
  Promise(opened != nullptr, "what a codec writes can be read");
  const std::vector<float> all = ReadAll(*opened);
  const v1::Encoding encoding = codec->encoding();
  const bool exact = encoding == v1::ENCODING_RAW || encoding == v1::ENCODING_BF16 ||
                     encoding == v1::ENCODING_TOP_K;
  for (size_t i = 0; i < residual.size(); ++i) {
    Promise(std::isfinite(residual[i]), "what is lost is finite");
    const float sum = values[i] + before[i];
    // Larger values are limited to the encoding's range.
    if (!exact || std::fabs(sum) > 1e37f) continue;
    Promise(residual[i] == sum - all[i], "what is lost is the sum less what is decoded");
  }
}

}  // namespace
FUZZ_TARGET(codec) {
  if (input.Flag()) {
    EncodeOurs(input);
  } else {
    DecodeStranger(input);
  }
}

}  // namespace leeway::codec
