// (x - mean) / std on the way into a batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/examples.h"

namespace leeway {

// One subtraction and one product an element, for bytes with their scaling to 0..1 included; a
// missing value (NaN) becomes 0, with or without means. Immutable.
class Normalizer {
 public:
  // For values as `examples` holds them. INVALID_ARGUMENT unless mean and std each have one number,
  // one a channel or one an element, and every value comes out finite.
  static absl::StatusOr<Normalizer> Create(const v1::Normalize& options, const Examples& examples);

  // Of one example, `elements` of the shape.
  void Apply(const uint8_t* in, float* out) const;
  void Apply(const float* in, float* out) const;

 private:
  explicit Normalizer(size_t elements) : elements_(elements) {}
  absl::Status CheckFinite(const Examples& examples) const;

  size_t elements_;
  // (x - shift) * scale; one for all or one an element.
  std::vector<float> shift_;
  std::vector<float> scale_;
};

}  // namespace leeway
