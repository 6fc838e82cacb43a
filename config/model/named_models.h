// Named models. Each name stands for a list of layers. There is one file for each family of models.
#pragma once

#include "config/model/layer_tree.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Replaces every named model in `model` with its layers. If the named model is the only layer and
// has no `name`, its layers become the model's layers, so that tensors have the same names as in
// other frameworks. Any other named model becomes a sequence with its name.
void ExpandNamedModels(v1::Model& model);

// Each appends the layers of one named model to `layers`. ExpandNamedModels calls them.
void AppendMlp(const v1::Mlp& mlp, LayerList& layers);
void AppendLenet(const v1::Lenet& lenet, LayerList& layers);
void AppendResnet20(const v1::Resnet20& resnet, LayerList& layers);
void AppendResnet18(const v1::Resnet18& resnet, LayerList& layers);
void AppendResnet50(const v1::Resnet50& resnet, LayerList& layers);
void AppendMobilenetV2(const v1::MobilenetV2& mobilenet, LayerList& layers);
void AppendGpt(const v1::Gpt& gpt, LayerList& layers);
void AppendLogistic(const v1::Logistic& logistic, LayerList& layers);
void AppendSoftmax(const v1::Softmax& softmax, LayerList& layers);
void AppendFactorizationMachine(const v1::FactorizationMachine& machine, LayerList& layers);

}  // namespace leeway
