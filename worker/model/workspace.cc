#include "worker/model/workspace.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/layers/limits.h"
#include "worker/model/batch_loss.h"
#include "worker/model/output_places.h"

namespace leeway {

// Divides one allocation into pieces. If there is no memory yet, only counts the floats that are
// needed.
class Arena {
 public:
  explicit Arena(float* memory) : memory_(memory) {}
  // Adds the size of the piece to `account`.
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

namespace {

size_t AveragedElements(const Layer& layer) {
  size_t elements = 0;
  for (const TensorPlan& tensor : layer.tensors()) {
    if (!tensor.trained) elements += tensor.elements();
  }
  return elements;
}

// Plans where the nodes of a graph write in the forward pass, for `capacity` examples.
class OutputPlanner {
 public:
  OutputPlanner(const Graph& graph, size_t capacity, MemoryPlan& plan)
      : graph_(graph),
        capacity_(capacity),
        plan_(plan),
        places_(PlanPlaces(graph)),
        memory_(graph.values.size()),
        buffers_(graph.nodes.size()) {}

  std::vector<NodeBuffers> Make(Arena& arena) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (OutputIsKept(i)) TakeOutput(i, arena, plan_.layers[i]);
      if (!graph_.nodes[i].segment.has_value()) TakeSaved(i, arena, plan_.layers[i]);
    }
    PlanSegments(arena);
    for (size_t i = 0; i < buffers_.size(); ++i) {
      buffers_[i].shares_input = places_.in_place[i];
      buffers_[i].output = memory_[places_.home[i + 1]];
    }
    return std::move(buffers_);
  }

 private:
  // Returns true if the output is kept from the forward to the backward pass. The result of a
  // segment is kept, because nodes after the segment read it.
  bool OutputIsKept(size_t node) const {
    const std::optional<size_t>& segment = graph_.nodes[node].segment;
    return !segment.has_value() || places_.home[graph_.segments[*segment].end] == node + 1;
  }

  void TakeOutput(size_t node, Arena& arena, uint64_t& account) {
    if (places_.home[node + 1] != node + 1) return;
    memory_[node + 1] = arena.Take(capacity_ * graph_.output(node).shape.elements(), account);
  }
  void TakeSaved(size_t node, Arena& arena, uint64_t& account) {
    const Layer* const layer = graph_.nodes[node].layer.get();
    if (layer != nullptr) buffers_[node].saved = arena.Take(layer->saved(capacity_), account);
  }

  // All segments share the same memory, which is as large as the largest of them.
  void PlanSegments(Arena& arena) {
    uint64_t largest = 0;
    for (const Segment& segment : graph_.segments) {
      largest = std::max(largest, PlaceSegment(segment, nullptr));
    }
    float* const shared = arena.Take(largest, plan_.recomputed);
    for (const Segment& segment : graph_.segments) PlaceSegment(segment, shared);
  }
  // Returns the number of floats that the segment takes.
  uint64_t PlaceSegment(const Segment& segment, float* at) {
    Arena arena(at);
    uint64_t taken = 0;
    for (size_t i = segment.begin; i < segment.end; ++i) {
      if (!OutputIsKept(i)) TakeOutput(i, arena, taken);
      TakeSaved(i, arena, taken);
    }
    return taken;
  }

  const Graph& graph_;
  const size_t capacity_;
  MemoryPlan& plan_;
  const OutputPlaces places_;
  // The memory of each value; null if it has none yet.
  std::vector<float*> memory_;
  std::vector<NodeBuffers> buffers_;
};

}  // namespace

void Workspace::PlanScratch(const Graph& graph, const Backend& backend, Arena& arena,
                            MemoryPlan& plan) {
  size_t scratch = 0;
  size_t discarded = 0;
  for (const Node& node : graph.nodes) {
    if (node.layer == nullptr) continue;
    scratch = std::max(scratch, node.layer->scratch(backend, capacity_));
    if (node.segment.has_value()) discarded = std::max(discarded, AveragedElements(*node.layer));
  }
  scratch_ = arena.Take(scratch, plan.scratch);
  discarded_ = arena.Take(discarded, plan.scratch);
}

MemoryPlan Workspace::Plan(const Graph& graph, const BatchNeeds& needs, bool own_memory,
                           const Backend& backend, Arena& arena) {
  MemoryPlan plan{.layers = std::vector<uint64_t>(graph.nodes.size())};
  buffers_ = OutputPlanner(graph, capacity_, plan).Make(arena);
  PlanScratch(graph, backend, arena, plan);
  sums_ =
      reinterpret_cast<LossSum*>(arena.Take(sizeof(BatchLoss::sums) / sizeof(float), plan.scratch));
  std::vector<bool> in_place;
  for (const NodeBuffers& buffers : buffers_) in_place.push_back(buffers.shares_input);
  plan_ = PlanGradients(graph, in_place);
  gradients_.clear();
  for (const size_t elements : plan_.buffers) {
    gradients_.push_back(arena.Take(capacity_ * elements, plan.gradients));
  }
  const size_t scores = graph.values.back().shape.elements();
  if (needs.mixed) other_gradient_ = arena.Take(capacity_ * scores, plan.gradients);
  if (!own_memory) return plan;
  features_ = arena.Take(capacity_ * graph.values.front().shape.elements(), plan.batch);
  labels_ = arena.Take(capacity_ * graph.positions(), plan.batch);
  if (needs.mixed) other_labels_ = arena.Take(capacity_ * graph.positions(), plan.batch);
  finite_ = arena.Take(needs.finite_cells, plan.batch);
  weights_ = arena.Take(needs.flat, plan.vectors);
  contribution_ = arena.Take(needs.flat, plan.vectors);
  return plan;
}

MemoryPlan Workspace::Measure(const Graph& graph, size_t capacity, const BatchNeeds& needs,
                              bool own_memory, const Backend& backend) {
  Arena nowhere(nullptr);
  return Workspace(capacity).Plan(graph, needs, own_memory, backend, nowhere);
}

absl::StatusOr<std::unique_ptr<Workspace>> Workspace::Make(const Graph& graph, size_t capacity,
                                                           const BatchNeeds& needs,
                                                           Backend& backend) {
  if (capacity > kMaxBatchExamples) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a batch of ", capacity, " examples is more than the limit of ", kMaxBatchExamples));
  }
  const bool own_memory = !backend.shares_host_memory();
  const uint64_t floats = Measure(graph, capacity, needs, own_memory, backend).total();
  if (floats > kMaxWorkspaceElements) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a batch of ", capacity, " examples needs ", floats, " floats of activations, ",
        "more than ", kMaxWorkspaceElements, ": make data.batch_size smaller"));
  }
  std::unique_ptr<Workspace> workspace(new Workspace(capacity));
  ASSIGN_OR_RETURN(workspace->memory_, backend.Allocate(floats));
  Arena arena(workspace->memory_.get());
  workspace->Plan(graph, needs, own_memory, backend, arena);
  return workspace;
}

}  // namespace leeway
