// Scales pictures to the size of a model's input.
#pragma once

#include <cstdint>

#include "worker/data/pictures/picture.h"

namespace leeway {

// The sides that cover height x width when the picture keeps its proportions: one of them is equal,
// the other is not smaller.
struct CoveringSize {
  uint32_t height;
  uint32_t width;
};
CoveringSize Covering(uint32_t picture_height, uint32_t picture_width, uint32_t height,
                      uint32_t width);

// The middle of the picture scaled to cover height x width, to out [height][width][3]. Linear
// interpolation; where the picture shrinks, the mean of all pixels that a new one covers, weighted
// by a triangle of twice its width (as in Pillow). No memory but a few rows.
void ScaleAndCrop(const Picture& picture, uint32_t height, uint32_t width, uint8_t* out);

}  // namespace leeway
