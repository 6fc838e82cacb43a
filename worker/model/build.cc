// Model::Build, which turns the job's layers into shapes, tensors and their places in the flat
// vector.
#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/job_key.h"
#include "common/status.h"
#include "worker/layers/limits.h"
#include "worker/model/model.h"

namespace leeway {
namespace {

std::vector<TensorPlan> TensorsOf(const Node& node) {
  return node.layer == nullptr ? std::vector<TensorPlan>() : node.layer->tensors();
}

// Returns an error if a layer or loss of a plugin would run on a device that does not share the
// host's memory, because plugins compute on the CPU only.
absl::Status CheckMemory(const Graph& graph, const Loss& loss, const Backend& backend) {
  if (backend.shares_host_memory()) return absl::OkStatus();
  const auto refuse = [](absl::string_view what, absl::string_view key) {
    return AtKey(absl::UnimplementedError(
                     absl::StrCat(what, " of plugins compute on the CPU: set workers.device: cpu")),
                 key);
  };
  for (const Node& node : graph.nodes) {
    const bool on_host = node.layer != nullptr && node.layer->needs_host_memory();
    if (on_host) return refuse(absl::StrCat("layer '", node.name, "': layers"), node.key);
  }
  return loss.needs_host_memory() ? refuse("losses", "model.custom_loss") : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Build(const v1::Model& config,
                                                    const ImageShape& input, uint32_t classes,
                                                    Backend& backend, size_t labels, bool mixed) {
  ASSIGN_OR_RETURN(const Plugins plugins, Plugins::Load(config));
  ASSIGN_OR_RETURN(Graph graph, MakeGraph(config, input, plugins));
  ASSIGN_OR_RETURN(std::unique_ptr<Loss> loss, MakeLoss(config, plugins));
  RETURN_IF_ERROR(CheckMemory(graph, *loss, backend));
  std::unique_ptr<Model> model(new Model(backend, std::move(loss), std::move(graph), mixed));
  RETURN_IF_ERROR(
      AtKey(model->loss_->CheckOutput(model->graph_.scores(), {classes, labels}), "model.loss"));
  for (const Node& node : model->graph_.nodes) {
    if (node.layer == nullptr || node.layer->tokens() == 0) continue;
    const uint64_t tokens = node.layer->tokens();
    model->tokens_ = model->tokens_ == 0 ? tokens : std::min(model->tokens_, tokens);
  }
  RETURN_IF_ERROR(model->PlaceTensors());
  model->PlacePanels();
  model->CountFlops();
  return model;
}

absl::Status Model::PlaceTensors() {
  const std::vector<Node>& list = graph_.nodes;
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

void Model::PlacePanels() {
  panels_.resize(graph_.nodes.size());
  size_t panels = 0;
  uint64_t offset = 0;
  for (size_t i = 0; i < panels_.size(); ++i) {
    uint64_t trained = 0;
    for (const Placed& tensor : tensors_[i]) {
      if (tensor.plan.trained) trained += tensor.plan.elements();
    }
    const Layer* layer = graph_.nodes[i].layer.get();
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
  if (backend_.shares_host_memory()) return;
  // The buffer has at least one page of its own, so that it can be pinned.
  finite_ = FloatBuffer(std::max(finite_cells(), FloatBuffer::kPageFloats));
  finite_pinned_ = backend_.Pin(finite_.span());
}

void Model::CountFlops() {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Layer* layer = graph_.nodes[i].layer.get();
    if (layer == nullptr) continue;
    const double forward = layer->flops();
    flops_.forward += forward;
    if (!graph_.output(i).trained) continue;
    flops_.backward += graph_.input(i).trained ? 2 * forward : forward;
  }
}

}  // namespace leeway
