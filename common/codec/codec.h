// Codecs encode a block's floats in fewer bytes, at the price of precision. Each encoding is one
// file, and make.cc lists them all. docs/protocol.md specifies the bytes. common/codec/encoded.h
// reads received payloads, and common/codec/plan.h decides which codec each block uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "common/codec/group_format.h"
#include "leeway/v1/job.pb.h"
#include "leeway/v1/parameter_server.pb.h"

namespace leeway {

// Writes one encoding. Stateless and thread-safe. The bytes are a pure function of the inputs, so
// they are the same on each machine.
class Codec {
 public:
  virtual ~Codec() = default;

  virtual v1::Encoding encoding() const = 0;
  // Returns the maximum number of bytes that Encode() writes for `count` values.
  virtual size_t MaxBytes(size_t count) const = 0;
  // Encodes values + residual, and leaves in `residual` the part that the encoding lost: error
  // feedback (Seide et al. 2014; Karimireddy et al. 2019, algorithm 2). Returns the number of bytes
  // written to `out`, which has room for MaxBytes().
  // - `residual` is as long as `values`, or empty. If it is empty, the values alone are encoded,
  //   and the loss is not kept.
  // - The sum is rounded to float32 and limited to the largest float32. With that sum s and the
  //   decoded values d, the new residual is s - d: exactly for raw, bf16 and top_k, and rounded
  //   once for the other codecs.
  // - `values` and `residual` are finite, and overlap neither each other nor `out`. (Values that
  //   are not finite do no harm, but decode to meaningless values.)
  virtual size_t Encode(std::span<const float> values, std::span<float> residual,
                        std::span<uint8_t> out) const = 0;
};

// Returns the codec of a configuration. For `none` that is the codec that writes float32 unchanged.
// Returns INVALID_ARGUMENT if the configuration has no type, or if it is `auto`, which must be
// resolved first (common/codec/choose.h).
absl::StatusOr<std::unique_ptr<const Codec>> MakeCodec(const v1::Codec& config);

// Returns the format of an encoding in groups of values. Returns nothing for raw and top_k.
std::optional<GroupFormat> GroupFormatOf(v1::Encoding encoding);
// Returns the codec of a format. The codec lives as long as the process.
const Codec& CodecOf(GroupFormat format);

// Returns true for top_k and sign. These encodings lose so much that the decoded number cannot
// replace a weight, so they carry only changes. In a reply the payload is the difference between a
// version and the version before it.
bool CarriesChanges(v1::Encoding encoding);

}  // namespace leeway
