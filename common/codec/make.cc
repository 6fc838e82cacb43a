#include <array>

#include "common/codec/codecs.h"

namespace leeway {

absl::StatusOr<std::unique_ptr<const Codec>> MakeCodec(const v1::Codec& config) {
  switch (config.type_case()) {
    case v1::Codec::kNone:
      return MakeRawCodec();
    case v1::Codec::kBf16:
      return MakeBf16Codec();
    case v1::Codec::kFp16:
      return MakeFp16Codec();
    case v1::Codec::kInt8:
      return MakeInt8Codec();
    case v1::Codec::kTopK:
      return MakeTopKCodec(config.top_k().share());
    case v1::Codec::kSign:
      return MakeSignCodec();
    case v1::Codec::kAuto:
      return absl::InvalidArgumentError("codec: auto has not been resolved");
    case v1::Codec::TYPE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "codec: this build does not know the type; use none, auto, bf16, fp16, int8, top_k or sign");
}

std::optional<GroupFormat> GroupFormatOf(v1::Encoding encoding) {
  switch (encoding) {
    case v1::ENCODING_BF16:
      return GroupFormat::kBf16;
    case v1::ENCODING_FP16:
      return GroupFormat::kFp16;
    case v1::ENCODING_INT8:
      return GroupFormat::kInt8;
    case v1::ENCODING_SIGN:
      return GroupFormat::kSign;
    default:
      return std::nullopt;
  }
}

const Codec& CodecOf(GroupFormat format) {
  static const std::array codecs = {MakeBf16Codec(), MakeFp16Codec(), MakeInt8Codec(),
                                    MakeSignCodec()};
  return *codecs[static_cast<size_t>(format)];
}

absl::StatusOr<std::shared_ptr<const EncodedValues>> EncodedValues::Open(
    v1::Encoding encoding, std::shared_ptr<const void> owner, FloatPayload::PieceList pieces,
    size_t count) {
  Pieces bytes(std::move(owner), std::move(pieces));
  switch (encoding) {
    case v1::ENCODING_RAW:
      return OpenRaw(std::move(bytes), count);
    case v1::ENCODING_BF16:
      return OpenBf16(std::move(bytes), count);
    case v1::ENCODING_FP16:
      return OpenFp16(std::move(bytes), count);
    case v1::ENCODING_INT8:
      return OpenInt8(std::move(bytes), count);
    case v1::ENCODING_TOP_K:
      return OpenTopK(std::move(bytes), count);
    case v1::ENCODING_SIGN:
      return OpenSign(std::move(bytes), count);
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("payload: this build does not know encoding ", static_cast<int>(encoding)));
  }
}

absl::Status Decode(v1::Encoding encoding, std::span<const uint8_t> bytes, std::span<float> out) {
  absl::StatusOr<std::shared_ptr<const EncodedValues>> values =
      EncodedValues::Open(encoding, nullptr, {bytes}, out.size());
  if (!values.ok()) return values.status();
  (*values)->Read(0, out);
  return absl::OkStatus();
}

bool CarriesChanges(v1::Encoding encoding) {
  return encoding == v1::ENCODING_TOP_K || encoding == v1::ENCODING_SIGN;
}

}  // namespace leeway
