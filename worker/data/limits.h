// Limits on the resources that a data source may use, so that a damaged or hostile file causes an
// error and does not end the process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leeway {

// The largest number of bytes of one unpacked file. Deflate packs up to 1032 to 1, so the packed
// size is not a useful bound.
inline constexpr uint64_t kMaxFileBytes = uint64_t{8} << 30;
// The largest number of bytes of a line of text, about 8 million numbers. A line is in memory while
// it is parsed.
inline constexpr size_t kMaxLineBytes = size_t{64} << 20;
// The largest number of bytes of a tokenizer's vocabulary, which is in memory while it is parsed.
// Vocabularies in use have a few megabytes.
inline constexpr uint64_t kMaxVocabularyBytes = uint64_t{256} << 20;
// The largest number of pixels of a decoded picture, and of bytes of its file.
inline constexpr uint64_t kMaxPicturePixels = uint64_t{1} << 26;
inline constexpr uint64_t kMaxPictureBytes = uint64_t{256} << 20;
// The largest number of bytes of all examples of a source in memory. In memory a libsvm line of
// three bytes becomes a row with all features. Mapped files do not count.
inline constexpr uint64_t kMaxDatasetBytes = uint64_t{16} << 30;
// The largest number of examples, because permutations number the rows with uint32_t.
inline constexpr uint64_t kMaxExamples = 0xffffffff;
// The largest number of elements of one example. This limit also keeps products of dimensions far
// from overflow.
inline constexpr uint64_t kMaxElements = uint64_t{1} << 27;
// The largest number of classes. Labels are stored as floats, which represent every integer up to
// this number.
inline constexpr uint64_t kMaxClasses = uint64_t{1} << 24;

}  // namespace leeway
