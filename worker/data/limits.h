// What a data source may cost at most: a damaged or hostile file is an error, not the end of the
// process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leeway {

// One file, unpacked: deflate packs up to 1032 to 1, so the packed size bounds nothing.
inline constexpr uint64_t kMaxFileBytes = uint64_t{8} << 30;
// A line of text, which is held while it is parsed: some 8 million numbers.
inline constexpr size_t kMaxLineBytes = size_t{64} << 20;
// All examples of a source as they are held (a libsvm line of three bytes becomes a dense row).
inline constexpr uint64_t kMaxDatasetBytes = uint64_t{16} << 30;
// Rows are numbered by uint32_t in permutations.
inline constexpr uint64_t kMaxExamples = 0xffffffff;
// Of one example; also keeps products of dimensions far from overflow.
inline constexpr uint64_t kMaxElements = uint64_t{1} << 27;
// Labels are held as floats, which count exactly up to here.
inline constexpr uint64_t kMaxClasses = uint64_t{1} << 24;

}  // namespace leeway
