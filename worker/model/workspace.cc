#include "worker/model/workspace.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/layers/limits.h"

namespace leeway {

// Hands out pieces of one allocation; without memory yet, only counts what will be wanted.
class Arena {
 public:
  explicit Arena(float* memory) : memory_(memory) {}
  // Adds what it takes to `account`.
  float* Take(size_t count, uint64_t& account) {
    float* piece = memory_ == nullptr ? nullptr : memory_ + used_;
    const size_t taken = (count + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
    used_ += taken;
    account += taken;
    return piece;
  }

 private:
  static constexpr size_t kAlignFloats = 16;
  float* memory_;
  size_t used_ = 0;
};

MemoryPlan Workspace::Plan(const std::vector<std::unique_ptr<Layer>>& layers, size_t flat,
                           bool own_memory, const Backend& backend, Arena& arena) {
  MemoryPlan plan{.layers = std::vector<uint64_t>(layers.size())};
  layers_.assign(layers.size(), {});
  size_t scratch = 0;
  size_t largest = 0;
  // Of the latest output: where it lies, and whether writing over it would destroy what is read
  // again.
  float* current = nullptr;
  bool needed = true;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = *layers[i];
    LayerBuffers& buffers = layers_[i];
    const Placement placement = layer.placement();
    buffers.shares_input =
        placement == Placement::kView || (placement == Placement::kInPlace && !needed);
    if (!buffers.shares_input) {
      current = arena.Take(capacity_ * layer.output().elements(), plan.layers[i]);
      needed = false;
    }
    needed = needed || layer.reads_output();
    buffers.output = current;
    buffers.saved = arena.Take(layer.saved(capacity_), plan.layers[i]);
    scratch = std::max(scratch, layer.scratch(backend, capacity_));
    largest = std::max(largest, layer.output().elements());
  }
  scratch_ = arena.Take(scratch, plan.scratch);
  sums_ = reinterpret_cast<LossSum*>(arena.Take(sizeof(LossSum) / sizeof(float), plan.scratch));
  for (float*& gradient : gradients_) gradient = arena.Take(capacity_ * largest, plan.gradients);
  if (!own_memory) return plan;
  features_ = arena.Take(capacity_ * layers.front()->input().elements(), plan.batch);
  labels_ = arena.Take(capacity_, plan.batch);
  weights_ = arena.Take(flat, plan.vectors);
  contribution_ = arena.Take(flat, plan.vectors);
  return plan;
}

MemoryPlan Workspace::Measure(const std::vector<std::unique_ptr<Layer>>& layers, size_t capacity,
                              size_t flat, bool own_memory, const Backend& backend) {
  Arena nowhere(nullptr);
  return Workspace(capacity).Plan(layers, flat, own_memory, backend, nowhere);
}

absl::StatusOr<std::unique_ptr<Workspace>> Workspace::Make(
    const std::vector<std::unique_ptr<Layer>>& layers, size_t capacity, size_t flat,
    Backend& backend) {
  if (capacity > kMaxBatchExamples) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a batch of ", capacity, " examples is more than the limit of ", kMaxBatchExamples));
  }
  const bool own_memory = !backend.shares_host_memory();
  const uint64_t floats = Measure(layers, capacity, flat, own_memory, backend).total();
  if (floats > kMaxWorkspaceElements) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a batch of ", capacity, " examples wants ", floats, " floats of activations, ",
        "more than ", kMaxWorkspaceElements, ": make data.batch_size smaller"));
  }
  std::unique_ptr<Workspace> workspace(new Workspace(capacity));
  ASSIGN_OR_RETURN(workspace->memory_, backend.Allocate(floats));
  Arena arena(workspace->memory_.get());
  workspace->Plan(layers, flat, own_memory, backend, arena);
  return workspace;
}

}  // namespace leeway
