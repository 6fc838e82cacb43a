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

void Workspace::PlanOutputs(const Graph& graph, const Backend& backend, Arena& arena,
                            MemoryPlan& plan) {
  // By value: where it lies, and whether writing over it would destroy what is read again.
  struct Place {
    float* at = nullptr;
    bool needed = true;
  };
  std::vector<Place> places(1);
  size_t scratch = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    NodeBuffers& buffers = buffers_[i];
    const Place& input = places[node.inputs[0]];
    const bool needed = input.needed || graph.input(i).readers > 1;
    buffers.shares_input = node.is_view() || (node.placement() == Placement::kInPlace && !needed);
    Place output = {input.at, needed};
    if (!buffers.shares_input) {
      const size_t elements = graph.output(i).shape.elements();
      output = {arena.Take(capacity_ * elements, plan.layers[i]), false};
    }
    if (node.layer != nullptr) {
      output.needed = output.needed || node.layer->reads_output();
      buffers.saved = arena.Take(node.layer->saved(capacity_), plan.layers[i]);
      scratch = std::max(scratch, node.layer->scratch(backend, capacity_));
    }
    buffers.output = output.at;
    places.push_back(output);
  }
  scratch_ = arena.Take(scratch, plan.scratch);
}

MemoryPlan Workspace::Plan(const Graph& graph, size_t flat, bool own_memory, const Backend& backend,
                           Arena& arena) {
  MemoryPlan plan{.layers = std::vector<uint64_t>(graph.nodes.size())};
  buffers_.assign(graph.nodes.size(), {});
  PlanOutputs(graph, backend, arena, plan);
  sums_ = reinterpret_cast<LossSum*>(arena.Take(sizeof(LossSum) / sizeof(float), plan.scratch));
  std::vector<bool> in_place;
  for (const NodeBuffers& buffers : buffers_) in_place.push_back(buffers.shares_input);
  plan_ = PlanGradients(graph, in_place);
  gradients_.clear();
  for (const size_t elements : plan_.buffers) {
    gradients_.push_back(arena.Take(capacity_ * elements, plan.gradients));
  }
  if (!own_memory) return plan;
  features_ = arena.Take(capacity_ * graph.values.front().shape.elements(), plan.batch);
  labels_ = arena.Take(capacity_ * graph.positions(), plan.batch);
  weights_ = arena.Take(flat, plan.vectors);
  contribution_ = arena.Take(flat, plan.vectors);
  return plan;
}

MemoryPlan Workspace::Measure(const Graph& graph, size_t capacity, size_t flat, bool own_memory,
                              const Backend& backend) {
  Arena nowhere(nullptr);
  return Workspace(capacity).Plan(graph, flat, own_memory, backend, nowhere);
}

absl::StatusOr<std::unique_ptr<Workspace>> Workspace::Make(const Graph& graph, size_t capacity,
                                                           size_t flat, Backend& backend) {
  if (capacity > kMaxBatchExamples) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a batch of ", capacity, " examples is more than the limit of ", kMaxBatchExamples));
  }
  const bool own_memory = !backend.shares_host_memory();
  const uint64_t floats = Measure(graph, capacity, flat, own_memory, backend).total();
  if (floats > kMaxWorkspaceElements) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a batch of ", capacity, " examples wants ", floats, " floats of activations, ",
        "more than ", kMaxWorkspaceElements, ": make data.batch_size smaller"));
  }
  std::unique_ptr<Workspace> workspace(new Workspace(capacity));
  ASSIGN_OR_RETURN(workspace->memory_, backend.Allocate(floats));
  Arena arena(workspace->memory_.get());
  workspace->Plan(graph, flat, own_memory, backend, arena);
  return workspace;
}

}  // namespace leeway
