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
// A tokenizer's vocabulary, which is held while it is parsed; those in use have some megabytes.
inline constexpr uint64_t kMaxVocabularyBytes = uint64_t{256} << 20;
// A picture that is decoded, and its file.
inline constexpr uint64_t kMaxPicturePixels = uint64_t{1} << 26;
inline constexpr uint64_t kMaxPictureBytes = uint64_t{256} << 20;
// All examples of a source as they are held (a libsvm line of three bytes becomes a dense row).
// Files that are mapped do not count.
inline constexpr uint64_t kMaxDatasetBytes = uint64_t{16} << 30;
// Rows are numbered by uint32_t in permutations.
inline constexpr uint64_t kMaxExamples = 0xffffffff;
// Of one example; also keeps products of dimensions far from overflow.
inline constexpr uint64_t kMaxElements = uint64_t{1} << 27;
// Labels are held as floats, which count exactly up to here.
inline constexpr uint64_t kMaxClasses = uint64_t{1} << 24;

}  // namespace leeway
