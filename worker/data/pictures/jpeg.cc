#include "worker/data/pictures/jpeg.h"

#include <memory>

#include <turbojpeg.h>

#include "common/status.h"

namespace leeway {
namespace {

struct Destroy {
  void operator()(void* decoder) const { tjDestroy(decoder); }
};
using Decoder = std::unique_ptr<void, Destroy>;

// Treats a warning as an error, for example about a truncated file, because the rest of the picture
// would be grey. Files with more scans than a picture needs are refused, because each scan decodes
// the whole picture again.
constexpr int kFlags = TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS;

absl::Status DamagedJpeg(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("a damaged JPEG (", why,
                                                 "): fetch it again, or move it out of the "
                                                 "folder"));
}

// Returns the smallest of 1, 1/2, 1/4 and 1/8 that keeps both sides at least as long as requested.
tjscalingfactor Scale(int height, int width, uint32_t least_height, uint32_t least_width) {
  tjscalingfactor scale{1, 1};
  for (const int denominator : {2, 4, 8}) {
    const tjscalingfactor smaller{1, denominator};
    const bool fits = static_cast<uint32_t>(TJSCALED(height, smaller)) >= least_height &&
                      static_cast<uint32_t>(TJSCALED(width, smaller)) >= least_width;
    if (fits) scale = smaller;
  }
  return scale;
}

}  // namespace

absl::StatusOr<Picture> DecodeJpeg(std::string_view content, uint32_t least_height,
                                   uint32_t least_width) {
  const Decoder decoder(tjInitDecompress());
  if (decoder == nullptr) return absl::InternalError("not enough memory to decode a JPEG");
  const auto* const bytes = reinterpret_cast<const unsigned char*>(content.data());
  int width = 0, height = 0, sampling = 0, colours = 0;
  if (tjDecompressHeader3(decoder.get(), bytes, content.size(), &width, &height, &sampling,
                          &colours) != 0) {
    return DamagedJpeg(tjGetErrorStr2(decoder.get()));
  }
  if (width <= 0 || height <= 0) return DamagedJpeg("it ends within its header");
  if (colours == TJCS_CMYK || colours == TJCS_YCCK) {
    return absl::InvalidArgumentError("a JPEG in CMYK: convert it to RGB");
  }
  RETURN_IF_ERROR(CheckPictureSize(static_cast<uint32_t>(height), static_cast<uint32_t>(width)));
  const tjscalingfactor scale = Scale(height, width, least_height, least_width);
  Picture picture;
  picture.height = static_cast<uint32_t>(TJSCALED(height, scale));
  picture.width = static_cast<uint32_t>(TJSCALED(width, scale));
  picture.pixels.resize(size_t{3} * picture.height * picture.width);
  if (tjDecompress2(decoder.get(), bytes, content.size(), picture.pixels.data(),
                    static_cast<int>(picture.width), 0, static_cast<int>(picture.height), TJPF_RGB,
                    kFlags) != 0) {
    return DamagedJpeg(tjGetErrorStr2(decoder.get()));
  }
  return picture;
}

}  // namespace leeway
