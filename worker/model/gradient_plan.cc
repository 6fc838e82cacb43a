#include "worker/model/gradient_plan.h"

#include <algorithm>
#include <utility>

namespace leeway {
namespace {

class Planner {
 public:
  Planner(const Graph& graph, const std::vector<bool>& in_place)
      : graph_(graph), in_place_(in_place), of_value_(graph.values.size()) {}

  GradientPlan Make() {
    plan_.scores = Acquire(graph_.values.back().shape.elements());
    of_value_.back() = plan_.scores;
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      if (graph_.output(i).trained) PlanStep(i);
    }
    return std::move(plan_);
  }

 private:
  GradientBuffer Acquire(size_t elements) {
    // Takes the smallest free buffer that is large enough. If all free buffers are too small, takes
    // the largest one, which grows.
    std::optional<GradientBuffer> best;
    for (GradientBuffer b = 0; b < plan_.buffers.size(); ++b) {
      if (users_[b] > 0) continue;
      const bool room = plan_.buffers[b] >= elements;
      const bool best_room = best.has_value() && plan_.buffers[*best] >= elements;
      const bool better = !best.has_value() || (room && !best_room) ||
                          (room == best_room && (plan_.buffers[b] < plan_.buffers[*best]) == room);
      if (better) best = b;
    }
    if (!best.has_value()) {
      best = plan_.buffers.size();
      plan_.buffers.push_back(0);
      users_.push_back(0);
    }
    plan_.buffers[*best] = std::max(plan_.buffers[*best], elements);
    users_[*best] = 1;
    return *best;
  }

  // Adds to the gradient of input `value` the gradients from its other readers. The buffer `to`
  // holds the gradient from one reader.
  void Join(size_t value, InputGradient& gradient) {
    std::optional<GradientBuffer>& found = of_value_[value];
    if (found.has_value()) {
      gradient.add = found;
      --users_[*found];
    }
    found = gradient.to;
  }

  void PlanStep(size_t index) {
    const Node& node = graph_.nodes[index];
    const GradientBuffer dy = *of_value_[index + 1];
    GradientStep step{index, dy, {}};
    // True if the inputs' gradient is dy itself, or the layer may overwrite dy.
    const bool takes_over = node.kind == Node::Kind::kAdd || node.is_view() || in_place_[index];
    // The inputs use dy one after the other.
    users_[dy] += node.inputs.size() - 1;
    for (const size_t value : node.inputs) {
      InputGradient gradient;
      if (graph_.values[value].trained) {
        gradient =
            takes_over ? TakeOver(node, value, dy) : InputGradient{.to = Acquire(Elements(value))};
        Join(value, gradient);
      }
      step.inputs.push_back(gradient);
      --users_[dy];
    }
    plan_.steps.push_back(std::move(step));
  }

  // Uses dy itself as the gradient, or a copy of dy if dy must not change or will be reused.
  InputGradient TakeOver(const Node& node, size_t value, GradientBuffer dy) {
    const bool writes = node.kind == Node::Kind::kLayer && !node.is_view();
    const bool joins = of_value_[value].has_value();
    if (users_[dy] > 1 && writes) return {.to = Acquire(Elements(value))};
    if (users_[dy] > 1 && joins) return {.to = Acquire(Elements(value)), .copy_of = dy};
    ++users_[dy];
    return {.to = dy};
  }

  size_t Elements(size_t value) const { return graph_.values[value].shape.elements(); }

  const Graph& graph_;
  const std::vector<bool>& in_place_;
  GradientPlan plan_;
  // For each buffer, the number of values whose gradients it holds, plus the inputs of the step in
  // progress that still need the buffer.
  std::vector<size_t> users_;
  // For each value, the buffer with the sum of its gradients so far.
  std::vector<std::optional<GradientBuffer>> of_value_;
};

}  // namespace

GradientPlan PlanGradients(const Graph& graph, const std::vector<bool>& in_place) {
  return Planner(graph, in_place).Make();
}

}  // namespace leeway
