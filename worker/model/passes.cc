// Model: the forward and the backward pass over its graph, node by node.
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/model/model.h"

namespace leeway {

Pass Model::PassOf(size_t node, size_t panel, size_t batch, bool training, const Draw& draw) {
  return {.backend = backend_,
          .batch = batch,
          .training = training,
          .draw = draw,
          .layer = static_cast<uint32_t>(node),
          .panel = panel,
          .weights = weights_[node],
          .contributions =
              training ? std::span<float* const>(contributions_[node]) : std::span<float* const>(),
          .accumulate = graph_.nodes[node].accumulates,
          .saved = workspace_->node(node).saved,
          .scratch = workspace_->scratch(),
          .failure = &failure_};
}

absl::Status Model::FailureOf(size_t node) const {
  return Annotate(failure_, absl::StrCat("layer '", graph_.nodes[node].name, "'"));
}

const float* Model::ValueOf(size_t value, const Examples& examples) const {
  const float* output = value == 0 ? nullptr : workspace_->node(value - 1).output;
  return output == nullptr ? examples.features : output;
}

void Model::Add(size_t count, const float* x, float* y) { backend_.AddRows(1, count, x, y); }

void Model::ForwardJoin(size_t index, const Examples& examples) {
  const Node& node = graph_.nodes[index];
  const NodeBuffers& buffers = workspace_->node(index);
  const ImageShape& shape = graph_.output(index).shape;
  if (node.kind == Node::Kind::kAdd) {
    const size_t count = examples.count * shape.elements();
    if (!buffers.shares_input) {
      backend_.Copy(count, ValueOf(node.inputs[0], examples), buffers.output);
    }
    return Add(count, ValueOf(node.inputs[1], examples), buffers.output);
  }
  const size_t rows = examples.count * shape.height * shape.width;
  float* target = buffers.output;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const size_t channels = graph_.input(index, k).shape.channels;
    backend_.CopyColumns({rows, channels, channels, shape.channels},
                         ValueOf(node.inputs[k], examples), target);
    target += channels;
  }
}

void Model::ForwardNode(size_t index, const Pass& pass, const Examples& examples) {
  const Node& node = graph_.nodes[index];
  if (node.layer == nullptr) return ForwardJoin(index, examples);
  node.layer->Forward(pass, ValueOf(node.inputs[0], examples), workspace_->node(index).output);
}

absl::StatusOr<const float*> Model::Forward(const Examples& examples, bool training,
                                            const Draw& draw, TrainObserver& observer) {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (graph_.nodes[i].is_view()) continue;
    for (size_t p = 0; p < layout_.panels(i).size(); ++p) {
      const ModelLayout::Panel& panel = layout_.panels(i)[p];
      if (!panel.all.empty()) {
        RETURN_IF_ERROR(observer.BeforeForward(panel.all));
        if (training) transfers_.WeightsUp(panel.all, workspace_->weights());
      }
      const bool has_all = backend_.cuts_products() || p + 1 == layout_.panels(i).size();
      if (!has_all) continue;
      transfers_.AwaitUp();
      ForwardNode(i, PassOf(i, PanelOf(p), examples.count, training, draw), examples);
      RETURN_IF_ERROR(FailureOf(i));
    }
  }
  return ValueOf(graph_.nodes.size(), examples);
}

std::span<float* const> Model::Discarding(size_t node) {
  discarding_.clear();
  float* averaged = workspace_->discarded();
  for (const ModelLayout::Placed& tensor : layout_.tensors(node)) {
    discarding_.push_back(tensor.plan.trained ? nullptr : averaged);
    if (!tensor.plan.trained) averaged += tensor.plan.elements();
  }
  return discarding_;
}

absl::Status Model::ForwardAgain(const Segment& segment, const Examples& examples,
                                 const Draw& draw) {
  transfers_.NoteKernels();
  for (size_t i = segment.begin; i < segment.end; ++i) {
    if (graph_.nodes[i].is_view()) continue;
    for (size_t p = 0; p < Products(i); ++p) {
      Pass pass = PassOf(i, PanelOf(p), examples.count, true, draw);
      pass.contributions = Discarding(i);
      ForwardNode(i, pass, examples);
      RETURN_IF_ERROR(FailureOf(i));
    }
  }
  return absl::OkStatus();
}

ElementRange Model::TrainedBy(size_t node, size_t product) const {
  const std::vector<ModelLayout::Panel>& panels = layout_.panels(node);
  if (backend_.cuts_products()) return panels[product].trained;
  const uint64_t first = panels.front().trained.offset;
  return {first, panels.back().trained.end() - first};
}

const float* Model::LookOver(const ElementRange& elements, size_t cell) {
  const float factor = 1 / loss_scale_;
  float* const contribution = contribution_ + elements.offset;
  if (!transfers_.travels()) {
    if (factor != 1) backend_.Scale(elements.count, factor, contribution, nullptr);
    return nullptr;
  }
  backend_.Scale(elements.count, factor, contribution, workspace_->finite() + cell);
  return transfers_.FiniteDown(cell, workspace_->finite() + cell);
}

const float* Model::LookOverAveraged() {
  if (!transfers_.travels()) return nullptr;
  const size_t cell = layout_.panel_count();
  float* const finite = workspace_->finite() + cell;
  // The averaged elements are contiguous.
  const size_t first = schema().trained();
  backend_.Scale(layout_.total() - first, 1, contribution_ + first, finite);
  transfers_.NoteKernels();
  return transfers_.FiniteDown(cell, finite);
}

absl::Status Model::BackwardLayer(const GradientStep& step, const Examples& examples,
                                  const Draw& draw) {
  const size_t i = step.node;
  const Node& node = graph_.nodes[i];
  float* const dy = workspace_->gradient(step.output);
  const std::optional<GradientBuffer>& to = step.inputs[0].to;
  float* const dx = to.has_value() ? workspace_->gradient(*to) : nullptr;
  for (size_t product = 0; product < Products(i); ++product) {
    transfers_.NoteKernels();
    node.layer->Backward(PassOf(i, PanelOf(product), examples.count, true, draw),
                         ValueOf(node.inputs[0], examples), workspace_->node(i).output, dy, dx);
    RETURN_IF_ERROR(FailureOf(i));
    const ElementRange trained = TrainedBy(i, product);
    if (trained.count == 0) continue;
    const std::span panels(layout_.panels(i));
    const auto given = backend_.cuts_products() ? panels.subspan(product, 1) : panels;
    const float* const finite = LookOver(trained, given.front().number);
    for (const ModelLayout::Panel& panel : given) {
      const std::span elements(&panel.trained, 1);
      RETURN_IF_ERROR(deliveries_.AddFinal(ContributionDown(elements), elements, finite));
    }
  }
  return absl::OkStatus();
}

void Model::BackwardJoin(const GradientStep& step, size_t which, size_t batch) {
  if (graph_.nodes[step.node].kind != Node::Kind::kConcat) return;
  const ImageShape& shape = graph_.output(step.node).shape;
  size_t before = 0;
  for (size_t k = 0; k < which; ++k) before += graph_.input(step.node, k).shape.channels;
  const size_t channels = graph_.input(step.node, which).shape.channels;
  backend_.CopyColumns({batch * shape.height * shape.width, channels, shape.channels, channels},
                       workspace_->gradient(step.output) + before,
                       workspace_->gradient(*step.inputs[which].to));
}

absl::Status Model::BackwardStep(const GradientStep& step, const Examples& examples,
                                 const Draw& draw) {
  const Node& node = graph_.nodes[step.node];
  if (node.layer != nullptr && !node.is_view()) {
    RETURN_IF_ERROR(BackwardLayer(step, examples, draw));
  }
  for (size_t k = 0; k < step.inputs.size(); ++k) {
    const InputGradient& input = step.inputs[k];
    if (!input.to.has_value()) continue;
    const size_t count = examples.count * graph_.input(step.node, k).shape.elements();
    float* const gradient = workspace_->gradient(*input.to);
    transfers_.NoteKernels();
    if (node.layer == nullptr) BackwardJoin(step, k, examples.count);
    if (input.copy_of.has_value()) {
      backend_.Copy(count, workspace_->gradient(*input.copy_of), gradient);
    }
    if (input.add.has_value()) {
      Add(count, workspace_->gradient(*input.add), gradient);
    }
  }
  return absl::OkStatus();
}

absl::Status Model::Backward(const Examples& examples, const Draw& draw) {
  // The segment whose values are now in the memory that segments share: at first the last segment
  // of the forward pass.
  size_t held = graph_.segments.size() - 1;
  for (const GradientStep& step : workspace_->gradients().steps) {
    const std::optional<size_t>& segment = graph_.nodes[step.node].segment;
    if (segment.has_value() && *segment != held) {
      held = *segment;
      RETURN_IF_ERROR(ForwardAgain(graph_.segments[held], examples, draw));
    }
    RETURN_IF_ERROR(BackwardStep(step, examples, draw));
  }
  return absl::OkStatus();
}

}  // namespace leeway
