// Decodes JPEGs with libjpeg-turbo.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "worker/data/pictures/picture.h"

namespace leeway {

// Does the same as DecodePicture, but errors do not name a path. Progressive JPEGs are supported.
// Returns INVALID_ARGUMENT for CMYK.
absl::StatusOr<Picture> DecodeJpeg(std::string_view content, uint32_t least_height,
                                   uint32_t least_width);

}  // namespace leeway
