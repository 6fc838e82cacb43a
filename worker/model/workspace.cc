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
  float* Take(size_t count) {
    float* piece = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += (count + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
    return piece;
  }
  size_t used() const { return used_; }

 private:
  static constexpr size_t kAlignFloats = 16;
  float* memory_;
  size_t used_ = 0;
};

void Workspace::Plan(const std::vector<std::unique_ptr<Layer>>& layers, size_t flat,
                     Backend& backend, Arena& arena) {
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
      current = arena.Take(capacity_ * layer.output().elements());
      needed = false;
    }
    needed = needed || layer.reads_output();
    buffers.output = current;
    buffers.saved = arena.Take(layer.saved(capacity_));
    scratch = std::max(scratch, layer.scratch(backend, capacity_));
    largest = std::max(largest, layer.output().elements());
  }
  scratch_ = arena.Take(scratch);
  sums_ = reinterpret_cast<LossSum*>(arena.Take(sizeof(LossSum) / sizeof(float)));
  for (float*& gradient : gradients_) gradient = arena.Take(capacity_ * largest);
  if (backend.shares_host_memory()) return;
  features_ = arena.Take(capacity_ * layers.front()->input().elements());
  labels_ = arena.Take(capacity_);
  weights_ = arena.Take(flat);
  contribution_ = arena.Take(flat);
}

absl::StatusOr<std::unique_ptr<Workspace>> Workspace::Make(
    const std::vector<std::unique_ptr<Layer>>& layers, size_t capacity, size_t flat,
    Backend& backend) {
  if (capacity > kMaxBatchExamples) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a batch of ", capacity, " examples is more than the limit of ", kMaxBatchExamples));
  }
  std::unique_ptr<Workspace> workspace(new Workspace(capacity));
  Arena measure(nullptr);
  workspace->Plan(layers, flat, backend, measure);
  if (measure.used() > kMaxWorkspaceElements) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a batch of ", capacity, " examples wants ", measure.used(), " floats of activations, ",
        "more than ", kMaxWorkspaceElements, ": make data.batch_size smaller"));
  }
  ASSIGN_OR_RETURN(workspace->memory_, backend.Allocate(measure.used()));
  Arena arena(workspace->memory_.get());
  workspace->Plan(layers, flat, backend, arena);
  return workspace;
}

}  // namespace leeway
