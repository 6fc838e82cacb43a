// Limits on what a data source may cost, so that a damaged or hostile file causes an error and does
// not end the process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leeway {

// The bytes of one unpacked file. Deflate packs up to 1032 to 1, so the packed size gives no bound.
inline constexpr uint64_t kMaxFileBytes = uint64_t{8} << 30;
// The bytes of a line of text, which is in memory while it is parsed: about 8 million numbers.
inline constexpr size_t kMaxLineBytes = size_t{64} << 20;
// The bytes of a tokenizer's vocabulary, which is in memory while it is parsed. Those in use have a
// few megabytes.
inline constexpr uint64_t kMaxVocabularyBytes = uint64_t{256} << 20;
// The pixels of a decoded picture, and the bytes of its file.
inline constexpr uint64_t kMaxPicturePixels = uint64_t{1} << 26;
inline constexpr uint64_t kMaxPictureBytes = uint64_t{256} << 20;
// The bytes of all examples of a source in memory (a libsvm line of three bytes becomes a dense
// row). Mapped files do not count.
inline constexpr uint64_t kMaxDatasetBytes = uint64_t{16} << 30;
// Permutations number the rows with uint32_t.
inline constexpr uint64_t kMaxExamples = 0xffffffff;
// The elements of one example. This limit also keeps products of dimensions far from overflow.
inline constexpr uint64_t kMaxElements = uint64_t{1} << 27;
// Labels are stored as floats, which represent every integer up to this one.
inline constexpr uint64_t kMaxClasses = uint64_t{1} << 24;

}  // namespace leeway
