// What the model is trained for: losses over the last layer's scores.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/plugins/plugins.h"
#include "leeway/v1/job.pb.h"
#include "worker/compute/backend.h"
#include "worker/data/shape.h"

namespace leeway {

// What the labels are.
struct LabelKind {
  // 0: they are numbers, not classes.
  uint32_t classes = 0;
  // Of one example.
  size_t each = 1;
};

// Immutable and thread-safe.
class Loss {
 public:
  virtual ~Loss() = default;
  // Whether the last layer's output fits.
  virtual absl::Status CheckOutput(const ImageShape& output, const LabelKind& labels) const = 0;
  // Whether every label is one that Compute takes. INVALID_ARGUMENT naming the first that is not.
  virtual absl::Status CheckLabels(std::span<const float> labels, uint32_t units) const = 0;
  // Scores are predicted numbers, one of an example.
  virtual bool is_regression() const { return false; }
  // It computes in the host's memory.
  virtual bool needs_host_memory() const { return false; }
  // Queues the sums over rows of scores [rows x units]; dscores, where not null, is the gradient of
  // the mean. All device memory. An error is of a plugin's loss.
  virtual absl::Status Compute(Backend& backend, size_t rows, uint32_t units, const float* scores,
                               const float* labels, LossSum* sum, float* dscores) const = 0;
};

// The model's loss. Errors of a plugin's are at their key (common/job_key.h).
absl::StatusOr<std::unique_ptr<Loss>> MakeLoss(const v1::Model& model, const Plugins& plugins);

}  // namespace leeway
