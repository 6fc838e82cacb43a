// Turns pictures upright. A file stores the pixels as the sensor saw them, and says how the camera
// was held.
#pragma once

#include <string_view>

#include "worker/data/pictures/picture.h"

namespace leeway {

// Returns the orientation in a JPEG's Exif segment, 1 to 8 (Exif 2.32, tag 274). Returns 1, which
// is upright, if the segment is absent or damaged, because the picture is usable without it.
int ExifOrientation(std::string_view jpeg);

// Returns true if the upright picture's height is the sensor's width.
inline bool LiesOnItsSide(int orientation) { return orientation >= 5; }

Picture Upright(Picture picture, int orientation);

}  // namespace leeway
