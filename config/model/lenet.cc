#include "config/model/named_models.h"
#include "config/model/parts.h"

namespace leeway {
namespace {

void AppendConvolution(LayerList& layers, const std::string& name, uint32_t filters,
                       uint32_t padding) {
  v1::Conv2d& conv = *AppendLayer(layers, name).mutable_conv2d();
  conv.set_filters(filters);
  conv.set_kernel(5);
  conv.set_padding(padding);
  AppendRelu(layers);
  AppendLayer(layers, "").mutable_max_pool()->set_size(2);
}

}  // namespace

void AppendLenet(const v1::Lenet& lenet, LayerList& layers) {
  AppendConvolution(layers, "conv1", 6, 2);
  AppendConvolution(layers, "conv2", 16, 0);
  AppendDense(layers, "fc1", 120);
  AppendRelu(layers);
  AppendDense(layers, "fc2", 84);
  AppendRelu(layers);
  AppendDense(layers, "fc3", lenet.classes());
}

}  // namespace leeway
