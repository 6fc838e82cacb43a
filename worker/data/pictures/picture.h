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

// The values of a pixel: red, green and blue.
inline constexpr size_t kPictureChannels = 3;

// A decoded picture: 8 bits each of red, green and blue for every pixel, row by row. Grey pictures
// have three equal values.
struct Picture {
  uint32_t height = 0;
  uint32_t width = 0;
  std::vector<uint8_t> pixels;
};

// RESOURCE_EXHAUSTED for more than kMaxPicturePixels, INVALID_ARGUMENT for a picture without
// pixels.
absl::Status CheckPictureSize(uint32_t height, uint32_t width);

// Reads a file for DecodePicture. Errors concern this host or the object store, and never the
// content.
absl::StatusOr<MappedFile> ReadPicture(const std::string& data_dir, const std::string& name);

// Decodes a JPEG or a PNG, as the content says. Alpha is dropped, 16 bits become 8, and a JPEG is
// turned as its Exif orientation says. The result may be smaller than the picture, but a side is
// not reduced below `least_height` or `least_width`: a JPEG is decoded at 1/2, 1/4 or 1/8 in a
// fraction of the time.
//
// Errors begin with `path`:
// - INVALID_ARGUMENT: the content is neither a JPEG nor a PNG, or it is damaged or truncated.
// - RESOURCE_EXHAUSTED: the file has more than kMaxPictureBytes, or by its header more than
//   kMaxPicturePixels. This is checked before memory is allocated.
// - INTERNAL: this host lacks something.
absl::StatusOr<Picture> DecodePicture(const std::string& path, std::string_view content,
                                      uint32_t least_height, uint32_t least_width);

}  // namespace leeway
