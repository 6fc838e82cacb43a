// Random flip, crop and cutout of training images.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/philox.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/shape.h"

namespace leeway {

// Immutable. Works on values before normalisation, so that a padded pixel is a black one.
class Augmenter {
 public:
  // INVALID_ARGUMENT if there is something to do and the examples are no images, or the padding is
  // not smaller than the image.
  static absl::StatusOr<Augmenter> Create(const v1::Augment& options, const ImageShape& shape);

  // Nothing to do.
  bool none() const { return !flip_ && padding_ == 0 && cutout_ == 0; }
  // One image to `out`; takes its draws from `draws`, for every image the same number of them in
  // the same order: flip, row, column, and the row and column around which a square is cut out
  // (DeVries and Taylor 2017, arXiv:1708.04552).
  template <typename T>
  void Apply(const T* image, RandomStream& draws, T* out) const;

 private:
  Augmenter(const v1::Augment& options, const ImageShape& shape);
  template <typename T>
  void CutOut(RandomStream& draws, T* image) const;

  ImageShape shape_;
  bool flip_;
  uint32_t padding_;
  uint32_t cutout_;
};

}  // namespace leeway
