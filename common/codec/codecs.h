// All encodings: their codecs and their readers. make.cc selects them by name.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/codec/codec.h"
#include "common/codec/encoded.h"
#include "common/codec/pieces.h"

namespace leeway {

std::unique_ptr<const Codec> MakeRawCodec();
std::unique_ptr<const Codec> MakeBf16Codec();
std::unique_ptr<const Codec> MakeFp16Codec();
std::unique_ptr<const Codec> MakeInt8Codec();
std::unique_ptr<const Codec> MakeSignCodec();
// Returns the codec that keeps this share of the values, in (0, 1].
std::unique_ptr<const Codec> MakeTopKCodec(double share);

// The result of the functions that open a payload. Each function returns INVALID_ARGUMENT unless
// the bytes encode `count` finite values.
using OpenedValues = absl::StatusOr<std::shared_ptr<const EncodedValues>>;
OpenedValues OpenRaw(Pieces bytes, size_t count);
OpenedValues OpenBf16(Pieces bytes, size_t count);
OpenedValues OpenFp16(Pieces bytes, size_t count);
OpenedValues OpenInt8(Pieces bytes, size_t count);
OpenedValues OpenSign(Pieces bytes, size_t count);
OpenedValues OpenTopK(Pieces bytes, size_t count);

}  // namespace leeway
