// What named models are made of.
#pragma once

#include <cstdint>
#include <string>

#include "config/model/layer_tree.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// A convolution without a bias, which a batch norm follows; `kernel` is odd, and pads to keep the
// size at stride 1.
struct ConvPart {
  uint32_t filters = 0;
  uint32_t kernel = 3;
  uint32_t stride = 1;
  uint32_t groups = 1;
};

// Each appends a layer; an empty name leaves it the default.
v1::Layer& AppendLayer(LayerList& layers, const std::string& name);
void AppendConv(LayerList& layers, const std::string& name, const ConvPart& conv);
void AppendBatchNorm(LayerList& layers, const std::string& name, double scale = 1);
void AppendRelu(LayerList& layers);
void AppendDense(LayerList& layers, const std::string& name, uint32_t units);
// A sequence, and its layers to append to.
LayerList& AppendSequence(LayerList& layers, const std::string& name);

}  // namespace leeway
