// Decodes JPEGs with libjpeg-turbo.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "worker/data/pictures/picture.h"

namespace leeway {

// Like DecodePicture, but errors have no path. Progressive JPEGs are supported; CMYK is
// INVALID_ARGUMENT.
absl::StatusOr<Picture> DecodeJpeg(std::string_view content, uint32_t least_height,
                                   uint32_t least_width);

}  // namespace leeway
