// How a camera was held: pictures are kept as the sensor saw them, with a note of how to turn them.
#pragma once

#include <string_view>

#include "worker/data/pictures/picture.h"

namespace leeway {

// The orientation in a JPEG's Exif segment, 1 to 8 (Exif 2.32, tag 274); 1, which is upright, where
// there is none or it is damaged: the picture is good without it.
int ExifOrientation(std::string_view jpeg);

// Whether its height is the sensor's width.
inline bool LiesOnItsSide(int orientation) { return orientation >= 5; }

// The picture as it is to be seen.
Picture Upright(Picture picture, int orientation);

}  // namespace leeway
