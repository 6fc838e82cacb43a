// Random flip, crop and cutout of training images.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/philox.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/shape.h"

namespace leeway {

// Immutable. An augmenter works on values before normalisation, so pixels of the padding are black.
class Augmenter {
 public:
  // Returns INVALID_ARGUMENT if `options` augments and the examples are not images, or if the
  // padding is not smaller than the image.
  static absl::StatusOr<Augmenter> Create(const v1::Augment& options, const ImageShape& shape);

  // Returns true if `options` leaves the images unchanged.
  bool none() const { return !flip_ && padding_ == 0 && cutout_ == 0; }
  // Writes one image, augmented, to `out`. Makes the same number of draws for every image, in this
  // order: flip, row, column, and the row and column around which a square is cut out (DeVries and
  // Taylor 2017, arXiv:1708.04552).
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
