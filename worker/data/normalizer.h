// Computes (x - mean) / std while examples are copied into a batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/examples.h"

namespace leeway {

// Computes one subtraction and one product for each element. For bytes these two also scale the
// values to 0..1. A missing value (NaN) becomes 0, with or without means. Immutable.
class Normalizer {
 public:
  // Makes a normalizer for the values of `examples`. Returns INVALID_ARGUMENT unless mean and std
  // each have one number, one for each channel or one for each element, and every normalised value
  // is finite.
  static absl::StatusOr<Normalizer> Create(const v1::Normalize& options, const Examples& examples);

  // Normalises one example, which has as many elements as the shape.
  void Apply(const uint8_t* in, float* out) const;
  void Apply(const float* in, float* out) const;

 private:
  explicit Normalizer(size_t elements) : elements_(elements) {}
  absl::Status CheckFinite(const Examples& examples) const;

  size_t elements_;
  // An element becomes (x - shift) * scale. Each vector has one number for all elements, or one
  // number for each element.
  std::vector<float> shift_;
  std::vector<float> scale_;
};

}  // namespace leeway
