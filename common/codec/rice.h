// Codes ascending indices in few bits: the gaps between them in Rice's code (Rice 1971; Golomb 1966
// with powers of two). For random indices the result is within 1 % of the entropy.
//
// A gap is g = index - previous index - 1 (for the first index g = index). It is coded as g >>
// parameter one-bits, a zero-bit, and the low `parameter` bits of g. Bits fill bytes from the
// lowest bit; the last byte ends in zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

inline constexpr uint32_t kRiceParameterMax = 31;

// Returns the parameter that suits k random indices below n.
uint32_t UsualRiceParameter(size_t n, size_t k);
// Returns the parameter that codes these indices, which are below `n`, in the fewest bits.
uint32_t BestRiceParameter(std::span<const uint32_t> indices, size_t n);
// Returns the maximum number of bytes for k indices below n with this parameter.
size_t RiceBytesMax(size_t n, size_t k, uint32_t parameter);

// Writes the code of `indices` to `out`. Returns the number of bytes written.
size_t WriteRice(std::span<const uint32_t> indices, uint32_t parameter, uint8_t* out);
// Reads indices.size() indices from the beginning of `bytes`, and returns the number of bytes read.
// Returns INVALID_ARGUMENT if the bytes end too early, an index is not below `n`, or the last byte
// does not end in zeros.
absl::StatusOr<size_t> ReadRice(std::span<const uint8_t> bytes, uint32_t parameter, size_t n,
                                std::span<uint32_t> indices);

}  // namespace leeway
