#include "worker/data/pictures/picture.h"

#include <cstdlib>
#include <filesystem>

#include "tests/worker/data/pictures/picture_files.h"
#include "worker/data/limits.h"
#include "worker/data/pictures/exif.h"

namespace leeway::picture {
namespace {

using absl::StatusCode;

// A smooth slope, which JPEG preserves.
int Slope(uint32_t y, uint32_t x, uint32_t c) { return static_cast<int>(40 * c + 2 * y + 3 * x); }

Picture Decode(const FileBytes& bytes, uint32_t least = 1000) {
  const auto picture = DecodePicture("f", View(bytes), least, least);
  INFO(picture.status().ToString());
  REQUIRE(picture.ok());
  REQUIRE(picture->pixels.size() == size_t{3} * picture->height * picture->width);
  return *picture;
}

void CheckNear(const FileBytes& pixels, const FileBytes& expected, int most) {
  REQUIRE(pixels.size() == expected.size());
  int largest = 0;
  for (size_t i = 0; i < pixels.size(); ++i) {
    largest = std::max(largest, std::abs(pixels[i] - expected[i]));
  }
  CHECK(largest <= most);
}

TEST_CASE("A JPEG comes out as its pixels, plain or progressive, grey as three equal values") {
  const FileBytes colours = Pixels(21, 30, 3, Slope);
  for (const int flags : {0, TJFLAG_PROGRESSIVE}) {
    const Picture picture = Decode(Jpeg(21, 30, colours, TJPF_RGB, flags));
    CHECK(picture.height == 21);
    CHECK(picture.width == 30);
    CheckNear(picture.pixels, colours, 4);
  }
  const auto grey = [](uint32_t y, uint32_t x, uint32_t) { return Slope(y, x, 0); };
  const Picture picture = Decode(Jpeg(21, 30, Pixels(21, 30, 1, grey), TJPF_GRAY));
  CheckNear(picture.pixels, Pixels(21, 30, 3, grey), 4);
}

TEST_CASE("A JPEG is decoded smaller as long as its sides are what is asked for") {
  const FileBytes bytes = Jpeg(64, 48, Pixels(64, 48, 3, [](auto, auto, auto) { return 90; }));
  const auto sides = [&](uint32_t height, uint32_t width) {
    const Picture picture = *DecodePicture("f", View(bytes), height, width);
    CheckNear(picture.pixels, FileBytes(picture.pixels.size(), 90), 2);
    return std::pair(picture.height, picture.width);
  };
  CHECK(sides(33, 1) == std::pair(64u, 48u));
  CHECK(sides(32, 24) == std::pair(32u, 24u));
  CHECK(sides(32, 25) == std::pair(64u, 48u));
  CHECK(sides(16, 12) == std::pair(16u, 12u));
  CHECK(sides(1, 1) == std::pair(8u, 6u));
}

// Adds an Exif segment with this orientation and byte order, after another segment.
FileBytes WithOrientation(const FileBytes& jpeg, uint8_t orientation, bool little_endian) {
  const std::string exif = little_endian
                               ? std::string("Exif\0\0II*\0\x8\0\0\0\1\0\x12\1\3\0\1\0\0\0", 24)
                               : std::string("Exif\0\0MM\0*\0\0\0\x8\0\1\1\x12\0\3\0\0\0\1", 24);
  std::string segments(
      "\xff\xe0\0\x04"
      "ab\xff\xe1\0\x22",
      10);
  segments += exif + (little_endian ? std::string{static_cast<char>(orientation), 0, 0, 0}
                                    : std::string{0, static_cast<char>(orientation), 0, 0});
  segments += std::string(4, '\0');
  FileBytes with(jpeg.begin(), jpeg.begin() + 2);
  with.insert(with.end(), segments.begin(), segments.end());
  with.insert(with.end(), jpeg.begin() + 2, jpeg.end());
  return with;
}

TEST_CASE("A JPEG is turned as its Exif orientation says") {
  constexpr uint32_t kHeight = 16, kWidth = 32;
  const FileBytes sensor = Jpeg(kHeight, kWidth, Pixels(kHeight, kWidth, 3, Slope));
  // Exif 2.32, 4.6.4: where the sensor's first row and first column are in the visible picture.
  struct Case {
    uint8_t orientation;
    // The sensor's pixels that are visible at (0, 0) and at the end of the first row.
    int first_y, first_x, end_y, end_x;
  };
  constexpr int kBottom = kHeight - 1, kRight = kWidth - 1;
  for (const Case& one :
       {Case{1, 0, 0, 0, kRight}, Case{2, 0, kRight, 0, 0}, Case{3, kBottom, kRight, kBottom, 0},
        Case{4, kBottom, 0, kBottom, kRight}, Case{5, 0, 0, kBottom, 0}, Case{6, kBottom, 0, 0, 0},
        Case{7, kBottom, kRight, 0, kRight}, Case{8, 0, kRight, kBottom, kRight},
        Case{9, 0, 0, 0, kRight}}) {
    for (const bool little_endian : {false, true}) {
      CAPTURE(int{one.orientation}, little_endian);
      const Picture seen = Decode(WithOrientation(sensor, one.orientation, little_endian));
      const bool side = one.orientation >= 5 && one.orientation <= 8;
      CHECK(seen.height == (side ? kWidth : kHeight));
      CHECK(seen.width == (side ? kHeight : kWidth));
      const uint8_t* const end = &seen.pixels[3 * (seen.width - 1)];
      CHECK(std::abs(seen.pixels[0] - Slope(one.first_y, one.first_x, 0)) <= 4);
      CHECK(std::abs(*end - Slope(one.end_y, one.end_x, 0)) <= 4);
    }
  }
  // The requested sides are those of the visible picture.
  const FileBytes turned = WithOrientation(sensor, 6, true);
  CHECK(DecodePicture("f", View(turned), 16, 8)->height == 16);
  // A segment that is cut off anywhere is ignored.
  for (uint8_t bytes = 2; bytes < 36; ++bytes) {
    FileBytes cut = turned;
    cut[11] = bytes;
    CHECK(ExifOrientation(View(cut)) >= 1);
  }
}

TEST_CASE("PNGs with a palette, alpha, 16 bits or grey come out as red, green and blue") {
  const FileBytes colours = Pixels(5, 7, 3, Slope);
  CHECK(Decode(Png(5, 7, colours.data(), PNG_FORMAT_RGB)).pixels == colours);

  const FileBytes alpha = Pixels(5, 7, 4, [](uint32_t y, uint32_t x, uint32_t c) {
    return c == 3 ? static_cast<int>(30 * y) : Slope(y, x, c);
  });
  CHECK(Decode(Png(5, 7, alpha.data(), PNG_FORMAT_RGBA)).pixels == colours);

  const auto grey = [](uint32_t y, uint32_t x, uint32_t) { return Slope(y, x, 1); };
  CHECK(Decode(Png(5, 7, Pixels(5, 7, 1, grey).data(), PNG_FORMAT_GRAY)).pixels ==
        Pixels(5, 7, 3, grey));

  const FileBytes palette = {10, 20, 30, 200, 100, 50};
  const FileBytes indices = Pixels(
      5, 7, 1, [](uint32_t y, uint32_t x, uint32_t) { return static_cast<int>((y + x) % 2); });
  const Picture indexed =
      Decode(Png(5, 7, indices.data(), PNG_FORMAT_RGB_COLORMAP, palette.data(), 2));
  CHECK(indexed.pixels == Pixels(5, 7, 3, [&](uint32_t y, uint32_t x, uint32_t c) {
          return palette[(y + x) % 2 * 3 + c];
        }));
}

TEST_CASE("Pictures that are cut off anywhere, or are none, are errors that say what to do") {
  const FileBytes colours = Pixels(40, 40, 3, Slope);
  for (const FileBytes& whole :
       {Jpeg(40, 40, colours), Jpeg(40, 40, colours, TJPF_RGB, TJFLAG_PROGRESSIVE),
        Png(40, 40, colours.data(), PNG_FORMAT_RGB)}) {
    // The last bytes of a file only mark its end, or check what was read.
    for (size_t size = 0; size + 20 < whole.size(); size += 1 + size / 9) {
      INFO(size);
      const FileBytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      RequireError(DecodePicture("cat/1.jpg", View(part), 40, 40), StatusCode::kInvalidArgument,
                   {"cat/1.jpg: ", "move it out of the folder"});
    }
  }
  RequireError(DecodePicture("f", "GIF89a..", 1, 1), StatusCode::kInvalidArgument,
               {"f: neither a JPEG nor a PNG", "'GIF89a..'"});
  FileBytes damaged = Png(40, 40, colours.data(), PNG_FORMAT_RGB);
  damaged[damaged.size() / 2] ^= 0x55;
  RequireError(DecodePicture("f", View(damaged), 1, 1), StatusCode::kInvalidArgument,
               {"damaged PNG"});
  const FileBytes cmyk = Jpeg(8, 8, FileBytes(8 * 8 * 4, 7), TJPF_CMYK);
  RequireError(DecodePicture("f", View(cmyk), 1, 1), StatusCode::kInvalidArgument,
               {"f: a JPEG in CMYK"});
}

// A header that promises many pixels, followed by a few bytes.
TEST_CASE("A picture of too many pixels is refused before memory is taken for it") {
  FileBytes png = Png(4, 4, FileBytes(48).data(), PNG_FORMAT_RGB);
  for (const size_t at : {16, 20}) png[at + 1] = 1;  // 65540 x 65540
  const auto crc = static_cast<uint32_t>(crc32(0, &png[12], 17));
  for (size_t i = 0; i < 4; ++i) png[29 + i] = static_cast<uint8_t>(crc >> (24 - 8 * i));
  RequireError(DecodePicture("f", View(png), 1, 1), StatusCode::kResourceExhausted,
               {"f: a picture of 65540 x 65540 pixels"});
  FileBytes jpeg = Jpeg(16, 16, FileBytes(16 * 16 * 3));
  const FileBytes frame = {0xff, 0xc0};
  const auto at = std::search(jpeg.begin(), jpeg.end(), frame.begin(), frame.end());
  REQUIRE(at != jpeg.end());
  std::fill_n(at + 5, 4, uint8_t{0xf0});  // 61680 x 61680
  const auto huge = DecodePicture("f", View(jpeg), 1, 1);
  RequireError(huge, StatusCode::kResourceExhausted, {"61680 x 61680"});
}

TEST_CASE("A file that is too long for a picture is refused by its name") {
  const DataFolder folder;
  folder.Write("long.png", "");
  std::filesystem::resize_file(folder / "long.png", kMaxPictureBytes + 2);
  const auto file = ReadPicture(folder.path(), "long.png");
  REQUIRE(file.ok());
  RequireError(DecodePicture(file->path, file->content.bytes(), 1, 1),
               StatusCode::kResourceExhausted,
               {"long.png: a file of more than 268435456 bytes", "move it out of the folder"});
}

}  // namespace
}  // namespace leeway::picture
