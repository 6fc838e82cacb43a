// The memory of one batch: planned once for a batch size, so that a step allocates nothing.
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

// Where a node finds its output and kept values, for batches up to `capacity` examples.
struct NodeBuffers {
  // Null while nothing lies between it and the batch's features.
  float* output = nullptr;
  // The output lies in the first input's place.
  bool shares_input = false;
  float* saved = nullptr;
};

// What besides its graph decides what a model's batches take.
struct BatchNeeds {
  // Floats of the weights, and of the contribution.
  size_t flat = 0;
  // Parts of the contribution of which is told whether they are finite.
  size_t finite_cells = 0;
  // Batches have other labels, too.
  bool mixed = false;
};

class Workspace {
 public:
  // What Make would allocate on a backend with memory of its own, or without. Scratch is what
  // `backend` wants of it.
  static MemoryPlan Measure(const Graph& graph, size_t capacity, const BatchNeeds& needs,
                            bool own_memory, const Backend& backend);
  // RESOURCE_EXHAUSTED beyond kMaxWorkspaceElements or what the device has. The graph outlives
  // it.
  static absl::StatusOr<std::unique_ptr<Workspace>> Make(const Graph& graph, size_t capacity,
                                                         const BatchNeeds& needs, Backend& backend);

  size_t capacity() const { return capacity_; }
  const NodeBuffers& node(size_t index) const { return buffers_[index]; }
  // The backward pass, and where its buffers are.
  const GradientPlan& gradients() const { return plan_; }
  float* gradient(GradientBuffer buffer) const { return gradients_[buffer]; }
  float* scratch() const { return scratch_; }
  // Room for the averaged tensors of a layer that is computed again, which nobody reads.
  float* discarded() const { return discarded_; }
  // As those of a BatchLoss.
  LossSum* sums() const { return sums_; }
  // Of batches that are mixed only: the scores' gradient by the other labels.
  float* other_gradient() const { return other_gradient_; }
  // By part: whether its contribution is finite; null as below.
  float* finite() const { return finite_; }
  // Copies of what the host handed in; null where the device shares the host's memory.
  float* features() const { return features_; }
  float* labels() const { return labels_; }
  float* other_labels() const { return other_labels_; }
  float* weights() const { return weights_; }
  float* contribution() const { return contribution_; }

 private:
  explicit Workspace(size_t capacity) : capacity_(capacity) {}
  // Lays everything out in `arena`, and says what it takes.
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
