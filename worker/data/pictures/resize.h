// Scales pictures to the size of a model's input.
#pragma once

#include <cstdint>

#include "worker/data/pictures/picture.h"

namespace leeway {

// The smallest sides with the picture's proportions that cover height x width. One of them equals
// the side to cover, and the other one is not smaller.
struct CoveringSize {
  uint32_t height;
  uint32_t width;
};
CoveringSize Covering(uint32_t picture_height, uint32_t picture_width, uint32_t height,
                      uint32_t width);

// Scales the picture to cover height x width, and writes its middle to out [height][width][3]. The
// scaling is linear interpolation. If the picture shrinks, a new pixel is the mean of all pixels
// that it covers. The weights form a triangle of twice the new pixel's width, as in Pillow. Uses
// memory for a few rows only.
void ScaleAndCrop(const Picture& picture, uint32_t height, uint32_t width, uint8_t* out);

}  // namespace leeway
