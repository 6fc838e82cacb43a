#include "worker/data/augmenter.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "common/job_key.h"
#include "worker/data/examples.h"

namespace leeway {

Augmenter::Augmenter(const v1::Augment& options, const ImageShape& shape)
    : shape_(shape),
      flip_(options.flip()),
      padding_(options.crop_padding()),
      cutout_(options.cutout()) {}

absl::StatusOr<Augmenter> Augmenter::Create(const v1::Augment& options, const ImageShape& shape) {
  const Augmenter augmenter(options, shape);
  if (augmenter.none()) return augmenter;
  if (shape.flat()) {
    return AtKey(absl::InvalidArgumentError(
                     absl::StrCat("the examples are ", DescribeShape(shape),
                                  ", not images; remove data.augment, or give the data a shape")),
                 "data.augment");
  }
  if (options.crop_padding() >= std::min(shape.height, shape.width)) {
    return AtKey(absl::InvalidArgumentError(absl::StrCat(
                     options.crop_padding(),
                     " must be less than the height and the width of the images, which are ",
                     DescribeShape(shape))),
                 "data.augment.crop_padding");
  }
  return augmenter;
}

template <typename T>
void Augmenter::CutOut(RandomStream& draws, T* image) const {
  const auto draw_range = [&](uint32_t side) {
    const int64_t first = static_cast<int64_t>(draws.Below(side)) - cutout_ / 2;
    return std::pair(std::max<int64_t>(first, 0), std::min<int64_t>(first + cutout_, side));
  };
  const auto [top, bottom] = draw_range(shape_.height);
  const auto [left, right] = draw_range(shape_.width);
  const int64_t channels = shape_.channels;
  for (int64_t y = top; y < bottom; ++y) {
    std::fill_n(image + (y * shape_.width + left) * channels, (right - left) * channels, T{0});
  }
}

template <typename T>
void Augmenter::Apply(const T* image, RandomStream& draws, T* out) const {
  const bool mirrored = flip_ && draws.Below(2) == 1;
  // Draws where the crop begins in the padded image. The offset counts from the corner of the
  // unpadded image.
  const auto draw_offset = [&] {
    return padding_ == 0 ? 0 : static_cast<int64_t>(draws.Below(2 * padding_ + 1)) - padding_;
  };
  const int64_t top = draw_offset();
  const int64_t left = draw_offset();
  const int64_t height = shape_.height, width = shape_.width, channels = shape_.channels;
  // The range of columns of `out` that show the image. It has at least one column, because the
  // padding is smaller than the image.
  const int64_t first = std::max<int64_t>(0, -left);
  const int64_t count = width - std::abs(left);
  // The column of the image that column `first` of `out` shows.
  const int64_t column = mirrored ? width - 1 - (first + left) : first + left;
  std::fill_n(out, height * width * channels, T{0});
  for (int64_t y = std::max<int64_t>(0, -top); y < std::min(height, height - top); ++y) {
    const T* from = image + ((y + top) * width + column) * channels;
    T* to = out + (y * width + first) * channels;
    if (!mirrored) {
      std::copy_n(from, count * channels, to);
      continue;
    }
    for (int64_t x = 0; x < count; ++x) {
      for (int64_t c = 0; c < channels; ++c) to[x * channels + c] = from[c - x * channels];
    }
  }
  if (cutout_ > 0) CutOut(draws, out);
}

template void Augmenter::Apply(const uint8_t*, RandomStream&, uint8_t*) const;
template void Augmenter::Apply(const float*, RandomStream&, float*) const;

}  // namespace leeway
