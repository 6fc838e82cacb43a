// Models by name: each is short for a list of layers, one family a file.
#pragma once

#include "config/model/layer_tree.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Writes out every named model in `model`. One that is the model's only layer, and has no `name`,
// becomes its layers, so that tensors are named as in other frameworks; any other becomes a
// sequence of its name.
void ExpandNamedModels(v1::Model& model);

// The families, called by ExpandNamedModels. Each appends to `layers`.
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
