// What the model is trained for: losses over the last layer's scores.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "leeway/v1/job.pb.h"
#include "worker/compute/backend.h"
#include "worker/data/shape.h"

namespace leeway {

// Immutable and thread-safe.
class Loss {
 public:
  virtual ~Loss() = default;
  // Whether the last layer's output fits, with labels of `classes` classes (0: they are numbers,
  // not classes).
  virtual absl::Status CheckOutput(const ImageShape& output, uint32_t classes) const = 0;
  // Whether every label is one that Compute takes. INVALID_ARGUMENT naming the first that is not.
  virtual absl::Status CheckLabels(std::span<const float> labels, uint32_t units) const = 0;
  // Scores are predicted numbers, one of an example.
  virtual bool is_regression() const { return false; }
  // Queues the sums over the batch; dscores, where not null, is the gradient of the mean. All
  // device memory.
  virtual void Compute(Backend& backend, size_t batch, uint32_t units, const float* scores,
                       const float* labels, LossSum* sum, float* dscores) const = 0;
};

std::unique_ptr<Loss> MakeLoss(v1::Loss loss);

}  // namespace leeway
