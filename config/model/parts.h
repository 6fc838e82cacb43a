// The parts of named models.
#pragma once

#include <cstdint>
#include <string>

#include "config/model/layer_tree.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// A convolution without a bias, which a batch norm follows. `kernel` is odd, and the padding keeps
// the size at stride 1.
struct ConvPart {
  uint32_t filters = 0;
  uint32_t kernel = 3;
  uint32_t stride = 1;
  uint32_t groups = 1;
};

// Each of these functions appends a layer. If the name is empty, the layer has its default name.
v1::Layer& AppendLayer(LayerList& layers, const std::string& name);
void AppendConv(LayerList& layers, const std::string& name, const ConvPart& conv);
void AppendBatchNorm(LayerList& layers, const std::string& name, double scale = 1);
void AppendRelu(LayerList& layers);
void AppendDense(LayerList& layers, const std::string& name, uint32_t units);
// Appends a sequence, and returns its list of layers, to which the caller appends.
LayerList& AppendSequence(LayerList& layers, const std::string& name);

}  // namespace leeway
