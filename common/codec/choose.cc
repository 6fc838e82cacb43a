#include "common/codec/choose.h"

#include <algorithm>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "common/codec/codecs.h"
#include "common/codec/group_codec.h"

namespace leeway {
namespace {

// A codec that loses more precision must need at most this share of the more precise codec's time.
constexpr double kGain = 0.9;
// The number of encoded bytes for each byte of float32.
constexpr double kBf16Size = 0.5;
constexpr double kInt8Size = (4.0 + kGroup) / (4.0 * kGroup);

// Returns the seconds that one byte of float32 takes to be encoded, sent and decoded. `link` is in
// bytes a second, and `size` is the number of encoded bytes for each byte of float32.
double SecondsPerByte(double link, double size, const CodecRates& rates) {
  return size / link + 1 / rates.encode + 1 / rates.decode;
}

bool Known(const CodecRates& rates) { return rates.encode > 0 && rates.decode > 0; }

template <typename Visit>
void VisitCodecs(v1::Compression& compression, const Visit& visit) {
  if (compression.has_contributions()) visit(*compression.mutable_contributions());
  if (compression.has_weights()) visit(*compression.mutable_weights());
  for (v1::LayerCompression& layers : *compression.mutable_layers()) {
    if (layers.has_contributions()) visit(*layers.mutable_contributions());
    if (layers.has_weights()) visit(*layers.mutable_weights());
  }
}

}  // namespace

CodecRates MeasureCodec(const Codec& codec, double seconds, const std::function<Time()>& now) {
  constexpr size_t kCount = 65536, kRoundsMax = 10000;
  std::vector<float> values(kCount), residual(kCount), decoded(kCount);
  for (size_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(i % 251) - 125.0f;
  std::vector<uint8_t> bytes(codec.MaxBytes(kCount));
  double encoding = 0, decoding = 0;
  size_t rounds = 0;
  do {
    const Time begin = now();
    const size_t size = codec.Encode(values, residual, bytes);
    const Time between = now();
    if (!Decode(codec.encoding(), {bytes.data(), size}, decoded).ok()) return {};
    encoding += Seconds(between - begin);
    decoding += Seconds(now() - between);
    ++rounds;
  } while (encoding + decoding < seconds && rounds < kRoundsMax);
  const double sum = static_cast<double>(rounds * kCount * sizeof(float));
  return {sum / encoding, sum / decoding};
}

AutoRates MeasureAutoCodecs(const std::function<Time()>& now) {
  constexpr double kSecondsEach = 0.05;
  return {MeasureCodec(*MakeBf16Codec(), kSecondsEach, now),
          MeasureCodec(*MakeInt8Codec(), kSecondsEach, now)};
}

v1::Codec ChooseCodec(double link, const AutoRates& rates) {
  v1::Codec choice;
  choice.mutable_none();
  if (!(link > 0)) return choice;
  double best = 1 / link;
  if (Known(rates.bf16) && SecondsPerByte(link, kBf16Size, rates.bf16) < kGain * best) {
    best = SecondsPerByte(link, kBf16Size, rates.bf16);
    choice.mutable_bf16();
  }
  if (Known(rates.int8) && SecondsPerByte(link, kInt8Size, rates.int8) < kGain * best) {
    choice.mutable_int8();
  }
  return choice;
}

std::string NameOf(const v1::Codec& codec) {
  const google::protobuf::OneofDescriptor* type = v1::Codec::descriptor()->oneof_decl(0);
  const auto* field = v1::Codec::GetReflection()->GetOneofFieldDescriptor(codec, type);
  return field == nullptr ? "none" : std::string(field->name());
}

bool HasAuto(const v1::Compression& compression) {
  bool found = false;
  v1::Compression copy = compression;
  VisitCodecs(copy, [&](const v1::Codec& codec) { found |= codec.has_auto_(); });
  return found;
}

void ResolveAuto(const v1::Codec& choice, v1::Compression& compression) {
  VisitCodecs(compression, [&](v1::Codec& codec) {
    if (codec.has_auto_()) codec = choice;
  });
}

}  // namespace leeway
