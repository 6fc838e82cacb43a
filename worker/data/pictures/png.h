// Decodes PNGs with libpng.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "worker/data/pictures/picture.h"

namespace leeway {

// Does the same as DecodePicture, but errors do not name a path. Palettes and grey become RGB.
absl::StatusOr<Picture> DecodePng(std::string_view content);

}  // namespace leeway
