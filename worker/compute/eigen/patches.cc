#include "worker/compute/eigen/patches.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace leeway {
namespace {

// Copies a run of floats. kLength is the run's length if the compiler knows it, otherwise 0. Many
// runs are only a few floats long, and for these a call of memcpy would cost more than the copy
// itself.
template <size_t kLength>
void CopyRun(const float* from, float* to, size_t) {
  std::memcpy(to, from, kLength * sizeof(float));
}
template <>
void CopyRun<0>(const float* from, float* to, size_t length) {
  std::copy_n(from, length, to);
}
void AddRun(const float* from, float* to, size_t length) {
  for (size_t i = 0; i < length; ++i) to[i] += from[i];
}

// The part of a row of the kernel that is inside the image.
struct Span {
  // The distance in floats from the start of the kernel's row to the part inside the image.
  size_t skip = 0;
  size_t length = 0;
};

// Computes where patches are in the image. Positions are signed, because positions in the padding
// before the image are negative.
class Geometry {
 public:
  explicit Geometry(const Conv2dShape& shape)
      : channels_(shape.input.channels),
        width_(shape.input.width),
        kernel_(shape.kernel),
        stride_(shape.stride),
        padding_(shape.padding) {}

  int64_t First(int64_t output) const { return output * stride_ - padding_; }
  Span Inside(int64_t first_column) const {
    const int64_t begin = std::max<int64_t>(0, -first_column);
    const int64_t end = std::min<int64_t>(kernel_, width_ - first_column);
    if (end <= begin) return {};
    return {static_cast<size_t>(begin * channels_), static_cast<size_t>((end - begin) * channels_)};
  }

 private:
  int64_t channels_;
  int64_t width_;
  int64_t kernel_;
  int64_t stride_;
  int64_t padding_;
};

// Calls visit(image run, patch run, Span) for each kernel row of each patch of the lines. The image
// run begins with the first pixel inside the image, and is null if no pixel is inside. Span says
// how many floats of the patch's run come before that pixel, and how long the run is.
template <typename Image, typename Patch, typename Visit>
void ForEachRun(const Conv2dShape& shape, Image* x, Patch* patches, size_t begin, size_t end,
                Visit visit) {
  const Geometry geometry(shape);
  const ImageShape out = shape.output();
  const size_t run = size_t{shape.kernel} * shape.input.channels;
  const int64_t row_floats = int64_t{shape.input.width} * shape.input.channels;
  for (size_t line = begin; line < end; ++line) {
    Image* image = x + line / out.height * shape.input.elements();
    const int64_t first_row = geometry.First(line % out.height);
    for (size_t column = 0; column < out.width; ++column) {
      const int64_t first_column = geometry.First(column);
      const Span span = geometry.Inside(first_column);
      for (int64_t row = first_row; row < first_row + shape.kernel; ++row, patches += run) {
        const bool inside = row >= 0 && row < shape.input.height && span.length > 0;
        const int64_t offset = row * row_floats + first_column * shape.input.channels + span.skip;
        visit(inside ? image + offset : nullptr, patches, span);
      }
    }
  }
}

template <size_t kLength>
void Gather(const Conv2dShape& shape, const float* x, size_t begin, size_t end, float* patches) {
  const size_t run = size_t{shape.kernel} * shape.input.channels;
  ForEachRun(shape, x, patches, begin, end, [run](const float* image, float* patch, Span span) {
    if (image != nullptr && span.length == run) {
      CopyRun<kLength>(image, patch, run);
      return;
    }
    std::fill_n(patch, run, 0.0f);
    if (image != nullptr) std::copy_n(image, span.length, patch + span.skip);
  });
}

}  // namespace

void GatherPatches(const Conv2dShape& shape, const float* x, size_t begin, size_t end,
                   float* patches) {
  // The cases are the lengths for grey and colour images under the usual kernels.
  switch (size_t{shape.kernel} * shape.input.channels) {
    case 3:
      return Gather<3>(shape, x, begin, end, patches);
    case 5:
      return Gather<5>(shape, x, begin, end, patches);
    case 9:
      return Gather<9>(shape, x, begin, end, patches);
    case 15:
      return Gather<15>(shape, x, begin, end, patches);
    default:
      return Gather<0>(shape, x, begin, end, patches);
  }
}

void ScatterPatches(const Conv2dShape& shape, const float* patches, size_t begin, size_t end,
                    float* dx) {
  ForEachRun(shape, dx, patches, begin, end, [](float* image, const float* patch, Span span) {
    if (image != nullptr) AddRun(patch + span.skip, image, span.length);
  });
}

}  // namespace leeway
