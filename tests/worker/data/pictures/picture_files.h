// Picture files that a test has made up.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <png.h>
#include <turbojpeg.h>

#include "tests/worker/data/data_test_util.h"

namespace leeway {

// Returns `channels` bytes of each pixel, by row, column and channel.
inline FileBytes Pixels(uint32_t height, uint32_t width, uint32_t channels,
                        const std::function<int(uint32_t, uint32_t, uint32_t)>& value) {
  FileBytes pixels;
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      for (uint32_t c = 0; c < channels; ++c) {
        pixels.push_back(static_cast<uint8_t>(value(y, x, c)));
      }
    }
  }
  return pixels;
}

inline FileBytes Jpeg(uint32_t height, uint32_t width, const FileBytes& pixels,
                      TJPF format = TJPF_RGB, int flags = 0) {
  const tjhandle encoder = tjInitCompress();
  unsigned char* out = nullptr;
  unsigned long size = 0;
  const TJSAMP sampling = format == TJPF_GRAY ? TJSAMP_GRAY : TJSAMP_444;
  REQUIRE(tjCompress2(encoder, pixels.data(), static_cast<int>(width), 0, static_cast<int>(height),
                      format, &out, &size, sampling, 95, flags) == 0);
  const FileBytes bytes(out, out + size);
  tjFree(out);
  tjDestroy(encoder);
  return bytes;
}

// `format` is one of libpng's, such as PNG_FORMAT_RGBA.
inline FileBytes Png(uint32_t height, uint32_t width, const void* pixels, png_uint_32 format,
                     const void* palette = nullptr, uint32_t palette_size = 0) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  image.colormap_entries = palette_size;
  png_alloc_size_t size = 0;
  REQUIRE(png_image_write_to_memory(&image, nullptr, &size, 0, pixels, 0, palette) != 0);
  FileBytes bytes(size);
  REQUIRE(png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels, 0, palette) != 0);
  bytes.resize(size);
  return bytes;
}

inline std::string_view View(const FileBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace leeway
