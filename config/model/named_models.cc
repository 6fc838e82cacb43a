#include "config/model/named_models.h"

#include <utility>

namespace leeway {
namespace {

// Appends the layers of a named model. Returns false if the layer is not one.
bool Append(const v1::Layer& layer, LayerList& layers) {
  switch (layer.layer_case()) {
    case v1::Layer::kMlp:
      AppendMlp(layer.mlp(), layers);
      return true;
    case v1::Layer::kLenet:
      AppendLenet(layer.lenet(), layers);
      return true;
    case v1::Layer::kResnet20:
      AppendResnet20(layer.resnet20(), layers);
      return true;
    case v1::Layer::kResnet18:
      AppendResnet18(layer.resnet18(), layers);
      return true;
    case v1::Layer::kResnet50:
      AppendResnet50(layer.resnet50(), layers);
      return true;
    case v1::Layer::kMobilenetV2:
      AppendMobilenetV2(layer.mobilenet_v2(), layers);
      return true;
    case v1::Layer::kGpt:
      AppendGpt(layer.gpt(), layers);
      return true;
    case v1::Layer::kLogistic:
      AppendLogistic(layer.logistic(), layers);
      return true;
    case v1::Layer::kSoftmax:
      AppendSoftmax(layer.softmax(), layers);
      return true;
    case v1::Layer::kFactorizationMachine:
      AppendFactorizationMachine(layer.factorization_machine(), layers);
      return true;
    default:
      return false;
  }
}

void ExpandIn(LayerList& layers);

void ExpandWithin(v1::Layer& layer) {
  switch (layer.layer_case()) {
    case v1::Layer::kSequence:
      return ExpandIn(*layer.mutable_sequence()->mutable_layers());
    case v1::Layer::kRecompute:
      return ExpandIn(*layer.mutable_recompute()->mutable_layers());
    case v1::Layer::kResidual:
      ExpandIn(*layer.mutable_residual()->mutable_layers());
      return ExpandIn(*layer.mutable_residual()->mutable_shortcut());
    case v1::Layer::kRepeat:
      return ExpandIn(*layer.mutable_repeat()->mutable_layers());
    case v1::Layer::kConcat:
      for (v1::Sequence& branch : *layer.mutable_concat()->mutable_branches()) {
        ExpandIn(*branch.mutable_layers());
      }
      return;
    default:
      return;
  }
}

void ExpandIn(LayerList& layers) {
  for (int i = 0; i < layers.size(); ++i) {
    v1::Layer& layer = layers[i];
    v1::Layer sequence;
    if (!Append(layer, *sequence.mutable_sequence()->mutable_layers())) {
      ExpandWithin(layer);
      continue;
    }
    sequence.set_name(LayerName(layer, i));
    layer.Swap(&sequence);
  }
}

}  // namespace

void ExpandNamedModels(v1::Model& model) {
  LayerList layers;
  const bool only = model.layers_size() == 1 && !model.layers(0).has_name();
  if (only && Append(model.layers(0), layers)) {
    model.mutable_layers()->Swap(&layers);
    return;
  }
  ExpandIn(*model.mutable_layers());
}

}  // namespace leeway
