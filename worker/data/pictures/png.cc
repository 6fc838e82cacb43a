#include "worker/data/pictures/png.h"

#include <png.h>

#include "common/status.h"

namespace leeway {
namespace {

constexpr size_t kChannelsWithAlpha = 4;

// Frees the memory that libpng allocates for an image.
struct Image {
  Image() { image.version = PNG_IMAGE_VERSION; }
  ~Image() { png_image_free(&image); }
  Image(const Image&) = delete;
  png_image image{};
};

absl::Status DamagedPng(const png_image& image) {
  return absl::InvalidArgumentError(absl::StrCat(
      "a damaged PNG (", image.message, "): fetch it again, or move it out of the folder"));
}

// Removes the fourth value of each pixel.
void DropAlpha(std::vector<uint8_t>& pixels) {
  const size_t count = pixels.size() / kChannelsWithAlpha;
  for (size_t i = 0; i < count; ++i) {
    for (size_t c = 0; c < kPictureChannels; ++c) {
      pixels[i * kPictureChannels + c] = pixels[i * kChannelsWithAlpha + c];
    }
  }
  pixels.resize(count * kPictureChannels);
}

}  // namespace

absl::StatusOr<Picture> DecodePng(std::string_view content) {
  Image holder;
  png_image& image = holder.image;
  if (png_image_begin_read_from_memory(&image, content.data(), content.size()) == 0) {
    return DamagedPng(image);
  }
  RETURN_IF_ERROR(CheckPictureSize(image.height, image.width));
  const bool alpha = (image.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  // Reads 16-bit values as sRGB, because libpng would treat them as linear light.
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  image.format = alpha ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  Picture picture{image.height, image.width, {}};
  picture.pixels.resize(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, picture.pixels.data(), 0, nullptr) == 0) {
    return DamagedPng(image);
  }
  if (alpha) DropAlpha(picture.pixels);
  return picture;
}

}  // namespace leeway
