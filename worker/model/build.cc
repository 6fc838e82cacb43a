// Model::Build: from the job's layers to shapes, tensors and their places in the flat vector.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/layers/limits.h"
#include "worker/layers/registry.h"
#include "worker/model/model.h"

namespace leeway {
namespace {

absl::Status CheckShape(const ImageShape& shape, absl::string_view what) {
  const uint64_t pixels = uint64_t{shape.height} * shape.width;
  if (pixels == 0 || shape.channels == 0) {
    return absl::InvalidArgumentError(absl::StrCat(what, " is empty"));
  }
  if (pixels > kMaxExampleElements / shape.channels) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " of ", shape.height, " x ", shape.width, " x ", shape.channels,
                     " is more than the limit of ", kMaxExampleElements, " values an example"));
  }
  return absl::OkStatus();
}

// Names become parts of tensor names in checkpoints and exports.
absl::Status CheckName(absl::string_view name) {
  const bool good = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  });
  if (good && !name.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("a name has letters, digits, '-', '_' and '.' only");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Build(const v1::Model& config,
                                                    const ImageShape& input, uint32_t classes,
                                                    Backend& backend) {
  if (config.layers().empty()) return absl::InvalidArgumentError("model.layers: there are none");
  RETURN_IF_ERROR(CheckShape(input, "model: the data's example"));
  std::unique_ptr<Model> model(new Model(backend, MakeLoss(config.loss())));
  RETURN_IF_ERROR(model->AddLayers(config, input));
  RETURN_IF_ERROR(
      Annotate(model->loss_->CheckOutput(model->layers_.back()->output(), classes), "model.loss"));
  RETURN_IF_ERROR(model->PlaceTensors());
  model->PlacePanels();
  model->CountFlops();
  return model;
}

absl::Status Model::AddLayers(const v1::Model& config, ImageShape shape) {
  std::map<std::string, int> taken;
  for (int i = 0; i < config.layers_size(); ++i) {
    const v1::Layer& layer = config.layers(i);
    const std::string type = LayerType(layer);
    const std::string name = layer.has_name() ? layer.name() : absl::StrCat(type, "_", i);
    std::string where = absl::StrCat("model.layers[", i, "]");
    if (!type.empty()) absl::StrAppend(&where, " ", type, " '", name, "'");
    LayerOr made = MakeLayer(layer, shape);
    if (!made.ok()) return Annotate(made.status(), where);
    RETURN_IF_ERROR(Annotate(CheckName(name), where));
    if (const auto [at, fresh] = taken.emplace(name, i); !fresh) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": the name is that of model.layers[", at->second, "]"));
    }
    shape = (*made)->output();
    RETURN_IF_ERROR(Annotate(CheckShape(shape, "an output"), where));
    layers_.push_back(*std::move(made));
    names_.push_back(name);
  }
  return absl::OkStatus();
}

absl::Status Model::PlaceTensors() {
  tensors_.resize(layers_.size());
  first_trained_ = layers_.size();
  uint64_t offset = 0;
  for (const bool trained : {true, false}) {
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (trained) {
        for (TensorPlan& plan : layers_[i]->tensors()) tensors_[i].push_back({std::move(plan), 0});
      }
      for (Placed& tensor : tensors_[i]) {
        if (tensor.plan.trained != trained) continue;
        if (trained) first_trained_ = std::min(first_trained_, i);
        tensor.offset = offset;
        if (!trained) averaged_.push_back({offset, tensor.plan.elements()});
        v1::TensorSpec* spec = schema_.add_tensors();
        spec->set_name(absl::StrCat(names_[i], "/", tensor.plan.name));
        for (const uint64_t side : tensor.plan.shape) spec->add_shape(side);
        spec->set_offset(offset);
        if (!trained) spec->set_momentum(tensor.plan.momentum);
        offset += tensor.plan.elements();
        if (offset > kMaxModelElements) {
          return absl::InvalidArgumentError(
              absl::StrCat("model.layers[", i, "]: with ", spec->name(), " the model has ", offset,
                           " elements, more than the limit of ", kMaxModelElements));
        }
      }
    }
    if (trained) schema_.set_trained(offset);
  }
  schema_.set_total(offset);
  if (schema_.trained() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("model.layers: none has weights to train: add dense or conv2d");
}

void Model::PlacePanels() {
  panels_.resize(layers_.size());
  uint64_t offset = 0;
  for (size_t i = 0; i < layers_.size(); ++i) {
    uint64_t trained = 0;
    for (const Placed& tensor : tensors_[i]) {
      if (tensor.plan.trained) trained += tensor.plan.elements();
    }
    std::vector<uint64_t> ends = layers_[i]->panel_cuts();
    ends.push_back(trained);
    uint64_t begin = 0;
    for (const uint64_t end : ends) {
      Panel& panel = panels_[i].emplace_back();
      panel.trained = {offset + begin, end - begin};
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

void Model::CountFlops() {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const double forward = layers_[i]->flops();
    flops_.forward += forward;
    if (i >= first_trained_) flops_.backward += i == first_trained_ ? forward : 2 * forward;
  }
}

}  // namespace leeway
