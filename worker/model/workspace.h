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

// The addresses of a node's output and kept values, for batches of up to `capacity` examples.
struct NodeBuffers {
  // The address of the output. Null if the output is the batch's features themselves.
  float* output = nullptr;
  // True if the output overwrites the first input.
  bool shares_input = false;
  float* saved = nullptr;
};

// The facts, besides the model's graph, on which a batch's memory depends.
struct BatchNeeds {
  // The number of floats in the weights, which is also the number in the contribution.
  size_t flat = 0;
  // The number of parts of the contribution that have a flag for finite values.
  size_t finite_cells = 0;
  // True if batches may have other labels, too.
  bool mixed = false;
};

class Workspace {
 public:
  // Returns the memory that Make would allocate on a backend with or without memory of its own. The
  // scratch size is what `backend` needs.
  static MemoryPlan Measure(const Graph& graph, size_t capacity, const BatchNeeds& needs,
                            bool own_memory, const Backend& backend);
  // Returns RESOURCE_EXHAUSTED if the batch needs more than kMaxWorkspaceElements or more than the
  // device has. The graph must outlive the workspace.
  static absl::StatusOr<std::unique_ptr<Workspace>> Make(const Graph& graph, size_t capacity,
                                                         const BatchNeeds& needs, Backend& backend);

  size_t capacity() const { return capacity_; }
  const NodeBuffers& node(size_t index) const { return buffers_[index]; }
  // Returns the plan of the backward pass. The next function returns the plan's buffers.
  const GradientPlan& gradients() const { return plan_; }
  float* gradient(GradientBuffer buffer) const { return gradients_[buffer]; }
  float* scratch() const { return scratch_; }
  // Memory for the averaged tensors of a layer that is computed again. Nothing reads them.
  float* discarded() const { return discarded_; }
  // The two sums of a BatchLoss.
  LossSum* sums() const { return sums_; }
  // The gradient of the scores for the other labels. Null unless batches are mixed.
  float* other_gradient() const { return other_gradient_; }
  // For each part of the contribution: 1 if the part is finite, otherwise 0. Null if the device
  // shares the host's memory.
  float* finite() const { return finite_; }
  // The device's copies of the features and the labels. Null if the device shares the host's
  // memory.
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
