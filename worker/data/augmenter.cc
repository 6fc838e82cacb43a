#include "worker/data/augmenter.h"

#include <algorithm>

#include "common/status.h"
#include "worker/data/examples.h"

namespace leeway {

Augmenter::Augmenter(const v1::Augment& options, const ImageShape& shape)
    : shape_(shape), flip_(options.flip()), padding_(options.crop_padding()) {}

absl::StatusOr<Augmenter> Augmenter::Create(const v1::Augment& options, const ImageShape& shape) {
  const Augmenter augmenter(options, shape);
  if (augmenter.none()) return augmenter;
  if (shape.flat()) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.augment: the examples are ", DescribeShape(shape),
                     ", not images; remove it, or give the data a shape"));
  }
  if (options.crop_padding() >= std::min(shape.height, shape.width)) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.augment.crop_padding: ", options.crop_padding(),
                     " is no less than the side of an image of ", DescribeShape(shape)));
  }
  return augmenter;
}

template <typename T>
void Augmenter::Apply(const T* image, RandomStream& draws, T* out) const {
  const bool mirrored = flip_ && draws.Below(2) == 1;
  // Where in the padded image the crop starts, counted from the unpadded corner.
  const auto draw_offset = [&] {
    return padding_ == 0 ? 0 : static_cast<int64_t>(draws.Below(2 * padding_ + 1)) - padding_;
  };
  const int64_t top = draw_offset();
  const int64_t left = draw_offset();
  const int64_t height = shape_.height, width = shape_.width, channels = shape_.channels;
  for (int64_t y = 0; y < height; ++y) {
    const int64_t row = y + top;
    for (int64_t x = 0; x < width; ++x, out += channels) {
      const int64_t across = x + left;
      const int64_t column = mirrored ? width - 1 - across : across;
      if (row < 0 || row >= height || column < 0 || column >= width) {
        std::fill_n(out, channels, T{0});
      } else {
        std::copy_n(image + (row * width + column) * channels, channels, out);
      }
    }
  }
}

template void Augmenter::Apply(const uint8_t*, RandomStream&, uint8_t*) const;
template void Augmenter::Apply(const float*, RandomStream&, float*) const;

}  // namespace leeway
