#include "worker/data/pictures/picture.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "worker/data/limits.h"
#include "worker/data/pictures/exif.h"
#include "worker/data/pictures/jpeg.h"
#include "worker/data/pictures/png.h"
#include "worker/data/text.h"

namespace leeway {
namespace {

constexpr std::string_view kJpeg = "\xff\xd8\xff";
constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";

bool Begins(std::string_view content, std::string_view magic) {
  return content.substr(0, magic.size()) == magic;
}

absl::Status CheckContentSize(const std::string& path, size_t bytes) {
  if (bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the file is empty: fetch it again, or move it out of the folder"));
  }
  if (bytes <= kMaxPictureBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(path, ": a file of more than ", kMaxPictureBytes,
                                                   " bytes: move it out of the folder"));
}

}  // namespace

absl::Status CheckPictureSize(uint32_t height, uint32_t width) {
  if (height == 0 || width == 0) return absl::InvalidArgumentError("the picture has no pixels");
  if (uint64_t{height} * width <= kMaxPicturePixels) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "a picture of ", width, " x ", height, " pixels, but a picture may have at most ",
      kMaxPicturePixels, " pixels: make it smaller, or move it out of the folder"));
}

absl::StatusOr<MappedFile> ReadPicture(const std::string& data_dir, const std::string& name) {
  // Reads one byte more than allowed, so that DecodePicture notices a file that is too long.
  return ReadDataFile(data_dir, name, kMaxPictureBytes + 1);
}

absl::StatusOr<Picture> DecodePicture(const std::string& path, std::string_view content,
                                      uint32_t least_height, uint32_t least_width) {
  RETURN_IF_ERROR(CheckContentSize(path, content.size()));
  if (Begins(content, kJpeg)) {
    const int orientation = ExifOrientation(content);
    if (LiesOnItsSide(orientation)) std::swap(least_height, least_width);
    auto picture = DecodeJpeg(content, least_height, least_width);
    if (!picture.ok()) return Annotate(picture.status(), path);
    return Upright(*std::move(picture), orientation);
  }
  if (Begins(content, kPng)) {
    auto picture = DecodePng(content);
    return picture.ok() ? picture : Annotate(picture.status(), path);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": neither a JPEG nor a PNG: it begins with ",
                   Quote({content.data(), std::min<size_t>(content.size(), 8)}),
                   "; convert it, or move it out of the folder"));
}

}  // namespace leeway
