// Reads and decodes pictures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/data_file.h"

namespace leeway {

// The number of values of a pixel: red, green and blue.
inline constexpr size_t kPictureChannels = 3;

// A decoded picture. Every pixel has 8 bits each of red, green and blue, and pixels are stored row
// by row. Pixels of grey pictures have three equal values.
struct Picture {
  uint32_t height = 0;
  uint32_t width = 0;
  std::vector<uint8_t> pixels;
};

// Returns RESOURCE_EXHAUSTED for more than kMaxPicturePixels, and INVALID_ARGUMENT for a picture
// without pixels.
absl::Status CheckPictureSize(uint32_t height, uint32_t width);

// Reads a file for DecodePicture. Errors concern this host or the object store, and never the
// content of the file.
absl::StatusOr<MappedFile> ReadPicture(const std::string& data_dir, const std::string& name);

// Decodes a JPEG or a PNG; the content decides which of the two it is. Alpha is dropped, 16 bits
// become 8, and a JPEG is turned upright by its Exif orientation. The result may be smaller than
// the picture, because decoding a JPEG at 1/2, 1/4 or 1/8 of its size takes a fraction of the time.
// But no side becomes smaller than `least_height` or `least_width`.
//
// Errors begin with `path`:
// - INVALID_ARGUMENT: the content is neither a JPEG nor a PNG, or it is damaged or truncated.
// - RESOURCE_EXHAUSTED: the file has more than kMaxPictureBytes, or its header declares more than
//   kMaxPicturePixels. Both are checked before memory is allocated.
// - INTERNAL: this host lacks a resource, such as memory.
absl::StatusOr<Picture> DecodePicture(const std::string& path, std::string_view content,
                                      uint32_t least_height, uint32_t least_width);

}  // namespace leeway
