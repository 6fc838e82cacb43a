// What the model is trained to reduce: losses over the last layer's scores.
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

// What kind of labels the data has.
struct LabelKind {
  // The number of classes. It is 0 if the labels are numbers, not classes.
  uint32_t classes = 0;
  // The number of labels of one example.
  size_t each = 1;
};

// Immutable and thread-safe.
class Loss {
 public:
  virtual ~Loss() = default;
  // Returns an error if the last layer's output does not fit this loss.
  virtual absl::Status CheckOutput(const ImageShape& output, const LabelKind& labels) const = 0;
  // Returns INVALID_ARGUMENT, naming the first label that Compute does not accept.
  virtual absl::Status CheckLabels(std::span<const float> labels, uint32_t units) const = 0;
  // Returns true if scores are predicted numbers, one for each example.
  virtual bool is_regression() const { return false; }
  virtual bool needs_host_memory() const { return false; }
  // Queues the sums of the losses over rows of scores [rows x units]. If `dscores` is not null,
  // writes the gradient of the mean loss to it. All pointers are device memory. Only a plugin's
  // loss returns errors.
  virtual absl::Status Compute(Backend& backend, size_t rows, uint32_t units, const float* scores,
                               const float* labels, LossSum* sum, float* dscores) const = 0;
};

// Makes the model's loss. Errors of a plugin are at the plugin's key (common/job_key.h).
absl::StatusOr<std::unique_ptr<Loss>> MakeLoss(const v1::Model& model, const Plugins& plugins);

}  // namespace leeway
