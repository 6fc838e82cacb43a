#include "config/model/parts.h"

namespace leeway {

v1::Layer& AppendLayer(LayerList& layers, const std::string& name) {
  v1::Layer& layer = *layers.Add();
  if (!name.empty()) layer.set_name(name);
  return layer;
}

void AppendConv(LayerList& layers, const std::string& name, const ConvPart& conv) {
  v1::Conv2d& layer = *AppendLayer(layers, name).mutable_conv2d();
  layer.set_filters(conv.filters);
  layer.set_kernel(conv.kernel);
  if (conv.stride != 1) layer.set_stride(conv.stride);
  if (conv.kernel > 1) layer.set_padding(conv.kernel / 2);
  if (conv.groups != 1) layer.set_groups(conv.groups);
  layer.set_bias(false);
}

void AppendBatchNorm(LayerList& layers, const std::string& name, double scale) {
  v1::BatchNorm& norm = *AppendLayer(layers, name).mutable_batch_norm();
  if (scale != 1) norm.set_scale(scale);
}

void AppendRelu(LayerList& layers) { AppendLayer(layers, "").mutable_relu(); }

void AppendDense(LayerList& layers, const std::string& name, uint32_t units) {
  AppendLayer(layers, name).mutable_dense()->set_units(units);
}

LayerList& AppendSequence(LayerList& layers, const std::string& name) {
  return *AppendLayer(layers, name).mutable_sequence()->mutable_layers();
}

}  // namespace leeway
