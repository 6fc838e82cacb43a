// Turns pictures upright: files keep the sensor's pixels, and a note of how the camera was held.
#pragma once

#include <string_view>

#include "worker/data/pictures/picture.h"

namespace leeway {

// The orientation in a JPEG's Exif segment, 1 to 8 (Exif 2.32, tag 274). 1, which is upright, if
// the segment is absent or damaged: the picture is usable without it.
int ExifOrientation(std::string_view jpeg);

// Whether the upright picture's height is the sensor's width.
inline bool LiesOnItsSide(int orientation) { return orientation >= 5; }

// Returns the picture turned upright.
Picture Upright(Picture picture, int orientation);

}  // namespace leeway
