// Ascending indices in few bits: the gaps between them by Rice's code (Rice 1971; Golomb 1966 with
// powers of two), which is within 1 % of the entropy for indices that lie at random.
//
// A gap g = index - previous index - 1 (the first: index) is g >> parameter one-bits, a zero-bit,
// and the low `parameter` bits of g. Bits fill bytes from the lowest; the last byte ends in zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

inline constexpr uint32_t kRiceParameterMax = 31;

// The parameter that suits k of n indices which lie at random.
uint32_t UsualRiceParameter(size_t n, size_t k);
// That writes these indices, of `n`, shortest.
uint32_t BestRiceParameter(std::span<const uint32_t> indices, size_t n);
// Bytes of any k of n indices by a parameter.
size_t RiceBytesMax(size_t n, size_t k, uint32_t parameter);

// Returns the bytes written.
size_t WriteRice(std::span<const uint32_t> indices, uint32_t parameter, uint8_t* out);
// Reads indices.size() of them from the front of `bytes`; returns the bytes read. INVALID_ARGUMENT
// where the bytes end too early, an index is not below `n`, or the last byte does not end in zeros.
absl::StatusOr<size_t> ReadRice(std::span<const uint8_t> bytes, uint32_t parameter, size_t n,
                                std::span<uint32_t> indices);

}  // namespace leeway
