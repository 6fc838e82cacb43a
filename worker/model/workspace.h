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

class Workspace {
 public:
  // What Make would allocate on a backend with memory of its own, or without. Scratch is what
  // `backend` wants of it.
  static MemoryPlan Measure(const Graph& graph, size_t capacity, size_t flat, bool own_memory,
                            const Backend& backend);
  // `flat` floats hold the weights and the contribution where the device has memory of its own.
  // RESOURCE_EXHAUSTED beyond kMaxWorkspaceElements or what the device has. The graph outlives
  // it.
  static absl::StatusOr<std::unique_ptr<Workspace>> Make(const Graph& graph, size_t capacity,
                                                         size_t flat, Backend& backend);

  size_t capacity() const { return capacity_; }
  const NodeBuffers& node(size_t index) const { return buffers_[index]; }
  // The backward pass, and where its buffers are.
  const GradientPlan& gradients() const { return plan_; }
  float* gradient(GradientBuffer buffer) const { return gradients_[buffer]; }
  float* scratch() const { return scratch_; }
  LossSum* sums() const { return sums_; }
  // Copies of what the host handed in; null where the device shares the host's memory.
  float* features() const { return features_; }
  float* labels() const { return labels_; }
  float* weights() const { return weights_; }
  float* contribution() const { return contribution_; }

 private:
  explicit Workspace(size_t capacity) : capacity_(capacity) {}
  // Lays everything out in `arena`, and says what it takes.
  MemoryPlan Plan(const Graph& graph, size_t flat, bool own_memory, const Backend& backend,
                  Arena& arena);
  void PlanOutputs(const Graph& graph, const Backend& backend, Arena& arena, MemoryPlan& plan);

  size_t capacity_;
  DeviceMemory memory_;
  std::vector<NodeBuffers> buffers_;
  GradientPlan plan_;
  std::vector<float*> gradients_;
  float* scratch_ = nullptr;
  LossSum* sums_ = nullptr;
  float* features_ = nullptr;
  float* labels_ = nullptr;
  float* weights_ = nullptr;
  float* contribution_ = nullptr;
};

}  // namespace leeway
