// A decoded picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/data_file.h"

namespace leeway {

// Of a picture's pixel: red, green and blue.
inline constexpr size_t kPictureChannels = 3;

// 8 bits of red, green and blue a pixel, row by row. Grey pictures have three equal values.
struct Picture {
  uint32_t height = 0;
  uint32_t width = 0;
  std::vector<uint8_t> pixels;
};

// RESOURCE_EXHAUSTED for more than kMaxPicturePixels, INVALID_ARGUMENT for none.
absl::Status CheckPictureSize(uint32_t height, uint32_t width);

// Reads a file for DecodePicture. An error is about this host or the object store, and never about
// the content.
absl::StatusOr<MappedFile> ReadPicture(const std::string& data_dir, const std::string& name);

// Decodes a JPEG or a PNG, whichever the content is. Alpha is dropped, 16 bits become 8, and a JPEG
// is turned as its Exif orientation says. A picture may come out smaller than it is, but with sides
// of `least_height` and `least_width` at least if it has them: a JPEG is decoded at 1/2, 1/4 or 1/8
// in a fraction of the time.
//
// Errors begin with `path`: INVALID_ARGUMENT for content that is neither, or damaged or cut off;
// RESOURCE_EXHAUSTED for more than kMaxPictureBytes, and for more than kMaxPicturePixels, by the
// header, before memory is taken; INTERNAL for what this host lacks.
absl::StatusOr<Picture> DecodePicture(const std::string& path, std::string_view content,
                                      uint32_t least_height, uint32_t least_width);

}  // namespace leeway
