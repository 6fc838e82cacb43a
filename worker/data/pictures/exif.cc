#include "worker/data/pictures/exif.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace leeway {
namespace {

constexpr std::string_view kExifBegin("Exif\0\0", 6);
constexpr uint32_t kOrientationTag = 274;
constexpr int kUpright = 1;

// Reads numbers at positions of a string. A number beyond the end of the string is 0.
class ExifNumbers {
 public:
  ExifNumbers(std::string_view bytes, bool little_endian)
      : bytes_(bytes), little_endian_(little_endian) {}

  uint32_t At(size_t place, size_t size) const {
    if (place > bytes_.size() || bytes_.size() - place < size) return 0;
    uint32_t number = 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t from = little_endian_ ? size - 1 - i : i;
      number = number << 8 | static_cast<uint8_t>(bytes_[place + from]);
    }
    return number;
  }

 private:
  const std::string_view bytes_;
  const bool little_endian_;
};

// Returns the content of the Exif segment. Empty if no Exif segment comes before the picture
// itself.
std::string_view ExifSegment(std::string_view jpeg) {
  const ExifNumbers numbers(jpeg, false);
  constexpr uint32_t kApp1 = 0xffe1, kScan = 0xffda;
  for (size_t at = 2; at + 4 <= jpeg.size();) {
    const uint32_t marker = numbers.At(at, 2);
    const size_t bytes = numbers.At(at + 2, 2);
    if (marker < 0xff00 || marker == kScan || bytes < 2) break;
    const std::string_view content = jpeg.substr(at + 4, bytes - 2);
    if (marker == kApp1 && content.starts_with(kExifBegin)) {
      return content.substr(kExifBegin.size());
    }
    at += 2 + bytes;
  }
  return {};
}

}  // namespace

int ExifOrientation(std::string_view jpeg) {
  // The segment is a TIFF header and a directory of entries with 12 bytes each.
  const std::string_view exif = ExifSegment(jpeg);
  const ExifNumbers numbers(exif, exif.starts_with("II"));
  const size_t directory = numbers.At(4, 4);
  const size_t entries = numbers.At(directory, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + 12 * i;
    if (entry >= exif.size()) break;
    if (numbers.At(entry, 2) != kOrientationTag) continue;
    const uint32_t orientation = numbers.At(entry + 8, 2);
    return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : kUpright;
  }
  return kUpright;
}

Picture Upright(Picture picture, int orientation) {
  if (orientation == kUpright) return picture;
  // Three facts about the orientation. The picture lies on its side; the upright picture has the
  // sensor's columns in reverse order; the upright picture has the sensor's rows in reverse order.
  const bool side = LiesOnItsSide(orientation);
  const bool mirrored =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool upside_down =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Picture seen;
  seen.height = side ? picture.width : picture.height;
  seen.width = side ? picture.height : picture.width;
  seen.pixels.resize(picture.pixels.size());
  for (uint32_t y = 0; y < seen.height; ++y) {
    for (uint32_t x = 0; x < seen.width; ++x) {
      uint32_t row = side ? x : y, column = side ? y : x;
      if (upside_down) row = picture.height - 1 - row;
      if (mirrored) column = picture.width - 1 - column;
      const size_t from = kPictureChannels * (size_t{row} * picture.width + column);
      std::copy_n(&picture.pixels[from], kPictureChannels,
                  &seen.pixels[kPictureChannels * (size_t{y} * seen.width + x)]);
    }
  }
  return seen;
}

}  // namespace leeway
