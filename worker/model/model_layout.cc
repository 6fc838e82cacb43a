#include "worker/model/model_layout.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/job_key.h"
#include "common/status.h"
#include "worker/layers/limits.h"
#include "worker/model/initializer.h"

namespace leeway {
namespace {

std::vector<TensorPlan> TensorsOf(const Node& node) {
  return node.layer == nullptr ? std::vector<TensorPlan>() : node.layer->tensors();
}

}  // namespace

absl::StatusOr<ModelLayout> ModelLayout::Make(const Graph& graph) {
  ModelLayout layout;
  RETURN_IF_ERROR(layout.PlaceTensors(graph));
  layout.PlacePanels(graph);
  return layout;
}

absl::Status ModelLayout::PlaceTensors(const Graph& graph) {
  const std::vector<Node>& list = graph.nodes;
  tensors_.resize(list.size());
  uint64_t offset = 0;
  for (const bool trained : {true, false}) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (trained) {
        for (TensorPlan& plan : TensorsOf(list[i])) tensors_[i].push_back({std::move(plan), 0});
      }
      for (Placed& tensor : tensors_[i]) {
        if (tensor.plan.trained != trained) continue;
        tensor.offset = offset;
        if (!trained) averaged_.push_back({offset, tensor.plan.elements()});
        v1::TensorSpec* spec = schema_.add_tensors();
        spec->set_name(absl::StrCat(list[i].name, "/", tensor.plan.name));
        for (const uint64_t side : tensor.plan.shape) spec->add_shape(side);
        spec->set_offset(offset);
        spec->set_kind(tensor.plan.kind);
        if (!trained) spec->set_momentum(tensor.plan.momentum);
        offset += tensor.plan.elements();
        if (offset > kMaxModelElements) {
          return AtKey(absl::InvalidArgumentError(
                           absl::StrCat("with ", spec->name(), " the model has ", offset,
                                        " elements, more than the limit of ", kMaxModelElements)),
                       list[i].key);
        }
      }
    }
    if (trained) schema_.set_trained(offset);
  }
  schema_.set_total(offset);
  if (schema_.trained() > 0) return absl::OkStatus();
  return AtKey(absl::InvalidArgumentError("no layer has weights to train: add dense or conv2d"),
               "model.layers");
}

void ModelLayout::PlacePanels(const Graph& graph) {
  panels_.resize(graph.nodes.size());
  size_t panels = 0;
  uint64_t offset = 0;
  for (size_t i = 0; i < panels_.size(); ++i) {
    uint64_t trained = 0;
    for (const Placed& tensor : tensors_[i]) {
      if (tensor.plan.trained) trained += tensor.plan.elements();
    }
    const Layer* layer = graph.nodes[i].layer.get();
    std::vector<uint64_t> ends = layer == nullptr ? std::vector<uint64_t>() : layer->panel_cuts();
    ends.push_back(trained);
    uint64_t begin = 0;
    for (const uint64_t end : ends) {
      Panel& panel = panels_[i].emplace_back();
      panel.trained = {offset + begin, end - begin};
      panel.number = panels++;
      if (panel.trained.count > 0) panel.all.push_back(panel.trained);
      begin = end;
    }
    for (const Placed& tensor : tensors_[i]) {
      if (tensor.plan.trained) continue;
      panels_[i].front().all.push_back({tensor.offset, tensor.plan.elements()});
    }
    offset += trained;
  }
}

void ModelLayout::Initialize(uint64_t seed, std::span<float> weights) const {
  uint64_t index = 0;
  for (const std::vector<Placed>& layer : tensors_) {
    for (const Placed& tensor : layer) {
      InitializeTensor(tensor.plan, seed, index++,
                       weights.subspan(tensor.offset, tensor.plan.elements()));
    }
  }
}

}  // namespace leeway
