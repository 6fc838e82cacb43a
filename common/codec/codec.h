// How a block's floats travel in fewer bytes, at the price of exactness. One file an encoding, all
// listed in make.cc; docs/protocol.md has the bytes. What is received is read by
// common/codec/encoded.h, which block takes which codec is decided by common/codec/plan.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "leeway/v1/parameter_server.pb.h"

namespace leeway {

// Writes one encoding. Stateless, thread-safe; the bytes are a pure function of the inputs, the
// same on every machine.
class Codec {
 public:
  virtual ~Codec() = default;

  virtual v1::Encoding encoding() const = 0;
  // What Encode() writes at most for `count` values.
  virtual size_t MaxBytes(size_t count) const = 0;
  // Encodes values + residual and leaves in `residual` what the encoding lost of it: error feedback
  // (Seide et al. 2014; Karimireddy et al. 2019, algorithm 2). Returns the bytes written to `out`,
  // which has room for MaxBytes().
  // - `residual` is as long as `values`, or empty: then the values alone are encoded, and what is
  //   lost is lost.
  // - The sum is rounded to float32, and held to the largest one. With that sum s and the decoded
  //   values d the new residual is s - d: exactly for raw, bf16 and top_k, rounded once for the
  //   others.
  // - `values` and `residual` are finite and do not overlap each other nor `out`. (Others do no
  //   harm, but decode to nothing sensible.)
  virtual size_t Encode(std::span<const float> values, std::span<float> residual,
                        std::span<uint8_t> out) const = 0;
};

// INVALID_ARGUMENT for `auto`, which is resolved before (common/codec/choose.h), and for no type.
// `none` gives the codec that writes float32 as it is.
absl::StatusOr<std::unique_ptr<const Codec>> MakeCodec(const v1::Codec& config);

// top_k and sign: they lose too much of a value to stand for it, and carry changes only. As a reply
// their payload is what a version adds to the one before it.
bool CarriesChanges(v1::Encoding encoding);

}  // namespace leeway
