// The memory of one batch. It is planned once for a batch size, so that a step allocates nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/backend.h"
#include "worker/layers/layer.h"
#include "worker/model/gradient_plan.h"
#include "worker/model/graph.h"
#include "worker/model/memory_plan.h"

namespace leeway {

class Arena;

// Where a node's output and kept values are, for batches of up to `capacity` examples.
struct NodeBuffers {
  // Null while the output is the batch's features themselves.
  float* output = nullptr;
  // Whether the output overwrites the first input.
  bool shares_input = false;
  float* saved = nullptr;
};

// What decides a batch's memory besides the model's graph.
struct BatchNeeds {
  // The number of floats in the weights, and in the contribution.
  size_t flat = 0;
  // The number of parts of the contribution that have a flag for finite values.
  size_t finite_cells = 0;
  // Whether batches have other labels, too.
  bool mixed = false;
};

class Workspace {
 public:
  // The memory that Make would allocate on a backend with or without memory of its own. The scratch
  // size is what `backend` needs.
  static MemoryPlan Measure(const Graph& graph, size_t capacity, const BatchNeeds& needs,
                            bool own_memory, const Backend& backend);
  // RESOURCE_EXHAUSTED above kMaxWorkspaceElements or above what the device has. The graph outlives
  // the workspace.
  static absl::StatusOr<std::unique_ptr<Workspace>> Make(const Graph& graph, size_t capacity,
                                                         const BatchNeeds& needs, Backend& backend);

  size_t capacity() const { return capacity_; }
  const NodeBuffers& node(size_t index) const { return buffers_[index]; }
  // The backward pass, and the buffers that it uses.
  const GradientPlan& gradients() const { return plan_; }
  float* gradient(GradientBuffer buffer) const { return gradients_[buffer]; }
  float* scratch() const { return scratch_; }
  // Memory for the averaged tensors of a layer that is computed again. Nothing reads them.
  float* discarded() const { return discarded_; }
  // The sums of a BatchLoss.
  LossSum* sums() const { return sums_; }
  // For mixed batches only: the gradient of the scores by the other labels.
  float* other_gradient() const { return other_gradient_; }
  // By part: whether its contribution is finite. Null under the same condition as below.
  float* finite() const { return finite_; }
  // Copies of the host's input. Null if the device shares the host's memory.
  float* features() const { return features_; }
  float* labels() const { return labels_; }
  float* other_labels() const { return other_labels_; }
  float* weights() const { return weights_; }
  float* contribution() const { return contribution_; }

 private:
  explicit Workspace(size_t capacity) : capacity_(capacity) {}
  // Places everything in `arena`, and returns the sizes.
  MemoryPlan Plan(const Graph& graph, const BatchNeeds& needs, bool own_memory,
                  const Backend& backend, Arena& arena);
  void PlanScratch(const Graph& graph, const Backend& backend, Arena& arena, MemoryPlan& plan);

  size_t capacity_;
  DeviceMemory memory_;
  std::vector<NodeBuffers> buffers_;
  GradientPlan plan_;
  std::vector<float*> gradients_;
  float* scratch_ = nullptr;
  float* discarded_ = nullptr;
  LossSum* sums_ = nullptr;
  float* other_gradient_ = nullptr;
  float* finite_ = nullptr;
  float* features_ = nullptr;
  float* labels_ = nullptr;
  float* other_labels_ = nullptr;
  float* weights_ = nullptr;
  float* contribution_ = nullptr;
};

}  // namespace leeway
