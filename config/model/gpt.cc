// Decoder-only transformers: Radford et al. 2019 (GPT-2). Layers are named as in Hugging Face's
// `transformers`, except that the layers of a block are within a residual.
#include <cmath>
#include <string>

#include "config/model/named_models.h"
#include "config/model/parts.h"

namespace leeway {
namespace {

constexpr double kDeviation = 0.02;

// Returns the deviation of the initial weights in the last layer of each residual. It falls with
// the number of residuals, two in each block, because their outputs are added up.
double ProjectionDeviation(const v1::Gpt& gpt) {
  return kDeviation / std::sqrt(2.0 * gpt.layers());
}

void AppendDropout(const v1::Gpt& gpt, LayerList& layers) {
  if (gpt.dropout() > 0) AppendLayer(layers, "").mutable_dropout()->set_rate(gpt.dropout());
}

void AppendPointwise(const v1::Gpt& gpt, const std::string& name, uint32_t units, double deviation,
                     LayerList& layers) {
  v1::Dense& dense = *AppendLayer(layers, name).mutable_dense();
  dense.set_units(units);
  dense.set_pointwise(true);
  dense.set_bias(gpt.bias());
  dense.set_initializer(v1::INITIALIZER_NORMAL);
  dense.set_deviation(deviation);
}

void AppendAttentionPart(const v1::Gpt& gpt, LayerList& block) {
  LayerList& layers = *AppendLayer(block, "attention").mutable_residual()->mutable_layers();
  AppendLayer(layers, "ln_1").mutable_layer_norm();
  v1::Attention& attention = *AppendLayer(layers, "attn").mutable_attention();
  attention.set_heads(gpt.heads());
  attention.set_bias(gpt.bias());
  attention.set_rotary(gpt.rotary());
  attention.set_dropout(gpt.dropout());
  attention.set_deviation(kDeviation);
  attention.set_projection_deviation(ProjectionDeviation(gpt));
  AppendDropout(gpt, layers);
}

void AppendFeedForwardPart(const v1::Gpt& gpt, LayerList& block) {
  LayerList& layers = *AppendLayer(block, "mlp").mutable_residual()->mutable_layers();
  AppendLayer(layers, "ln_2").mutable_layer_norm();
  AppendPointwise(gpt, "c_fc", 4 * gpt.width(), kDeviation, layers);
  AppendLayer(layers, "").mutable_gelu()->set_tanh(gpt.tanh_gelu());
  AppendPointwise(gpt, "c_proj", gpt.width(), ProjectionDeviation(gpt), layers);
  AppendDropout(gpt, layers);
}

}  // namespace

void AppendGpt(const v1::Gpt& gpt, LayerList& layers) {
  v1::Embedding& embedding = *AppendLayer(layers, "wte").mutable_embedding();
  embedding.set_vocabulary(gpt.vocabulary());
  embedding.set_width(gpt.width());
  embedding.set_deviation(kDeviation);
  if (!gpt.rotary()) {
    AppendLayer(layers, "wpe").mutable_position_embedding()->set_deviation(kDeviation);
  }
  AppendDropout(gpt, layers);
  LayerList& blocks = AppendSequence(layers, "h");
  for (uint32_t i = 0; i < gpt.layers(); ++i) {
    LayerList& block = AppendSequence(blocks, std::to_string(i));
    AppendAttentionPart(gpt, block);
    AppendFeedForwardPart(gpt, block);
  }
  AppendLayer(layers, "ln_f").mutable_layer_norm();
  AppendLayer(layers, "lm_head").mutable_tied_dense()->set_embedding("wte");
}

}  // namespace leeway
