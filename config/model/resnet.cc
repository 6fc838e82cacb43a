// Residual networks: He et al. 2016 (arXiv:1512.03385). Layers are named as in torchvision, except
// for `shortcut`, which is `downsample` there.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "config/model/named_models.h"
#include "config/model/parts.h"

namespace leeway {
namespace {

// The properties that all blocks of a network share.
struct BlockStyle {
  bool bottleneck = false;
  v1::Shortcut shortcut = v1::SHORTCUT_B;
  bool zero_init = false;
  // Returns the number of a block's output channels for each channel of its width.
  uint32_t expansion() const { return bottleneck ? 4 : 1; }
};

// A block's place in the network.
struct Block {
  uint32_t inputs = 0;
  uint32_t width = 0;
  uint32_t stride = 1;
};

void AppendShortcut(const BlockStyle& style, const Block& block, LayerList& shortcut) {
  const uint32_t outputs = block.width * style.expansion();
  if (block.stride == 1 && block.inputs == outputs) return;
  if (style.shortcut == v1::SHORTCUT_B) {
    AppendConv(shortcut, "0", {.filters = outputs, .kernel = 1, .stride = block.stride});
    AppendBatchNorm(shortcut, "1");
    return;
  }
  v1::Pool& pixels = *AppendLayer(shortcut, "").mutable_avg_pool();
  pixels.set_size(1);
  pixels.set_stride(block.stride);
  v1::PadChannels& pad = *AppendLayer(shortcut, "").mutable_pad_channels();
  pad.set_before((outputs - block.inputs) / 2);
  pad.set_after(outputs - block.inputs - pad.before());
}

// Returns the convolutions between a block's input and the sum.
std::vector<ConvPart> Convolutions(const BlockStyle& style, const Block& block) {
  const ConvPart spatial{.filters = block.width, .kernel = 3, .stride = block.stride};
  if (!style.bottleneck) return {spatial, {.filters = block.width, .kernel = 3}};
  return {{.filters = block.width, .kernel = 1},
          spatial,
          {.filters = block.width * style.expansion(), .kernel = 1}};
}

// Appends a block. The ReLU after the sum is not part of the residual, so that the residual has
// torchvision's name for the block. The ReLU has no tensors that need a name.
void AppendResidual(const BlockStyle& style, const Block& block, const std::string& name,
                    LayerList& blocks) {
  v1::Residual& residual = *AppendLayer(blocks, name).mutable_residual();
  AppendRelu(blocks);
  LayerList& layers = *residual.mutable_layers();
  const std::vector<ConvPart> convolutions = Convolutions(style, block);
  for (size_t i = 0; i < convolutions.size(); ++i) {
    const bool last = i + 1 == convolutions.size();
    AppendConv(layers, absl::StrCat("conv", i + 1), convolutions[i]);
    AppendBatchNorm(layers, absl::StrCat("bn", i + 1), last && style.zero_init ? 0 : 1);
    if (!last) AppendRelu(layers);
  }
  AppendShortcut(style, block, *residual.mutable_shortcut());
}

// Appends stages of blocks. Each stage except the first begins with a stride of 2.
void AppendStages(const BlockStyle& style, const std::vector<uint32_t>& counts, uint32_t width,
                  LayerList& layers) {
  uint32_t inputs = width;
  for (size_t stage = 0; stage < counts.size(); ++stage, width *= 2) {
    LayerList& blocks = AppendSequence(layers, absl::StrCat("layer", stage + 1));
    for (uint32_t i = 0; i < counts[stage]; ++i) {
      const uint32_t stride = stage > 0 && i == 0 ? 2 : 1;
      AppendResidual(style, {inputs, width, stride}, std::to_string(i), blocks);
      inputs = width * style.expansion();
    }
  }
}

void AppendStem(v1::Stem stem, uint32_t filters, LayerList& layers) {
  const bool large = stem == v1::STEM_IMAGENET;
  AppendConv(layers, "conv1",
             {.filters = filters, .kernel = large ? 7u : 3u, .stride = large ? 2u : 1u});
  AppendBatchNorm(layers, "bn1");
  AppendRelu(layers);
  if (!large) return;
  v1::Pool& pool = *AppendLayer(layers, "").mutable_max_pool();
  pool.set_size(3);
  pool.set_stride(2);
  pool.set_padding(1);
}

void AppendHead(uint32_t classes, LayerList& layers) {
  AppendLayer(layers, "").mutable_global_avg_pool();
  AppendDense(layers, "fc", classes);
}

}  // namespace

void AppendResnet20(const v1::Resnet20& resnet, LayerList& layers) {
  AppendStem(v1::STEM_CIFAR, 16, layers);
  AppendStages({.shortcut = resnet.shortcut(), .zero_init = resnet.zero_init()}, {3, 3, 3}, 16,
               layers);
  AppendHead(resnet.classes(), layers);
}

void AppendResnet18(const v1::Resnet18& resnet, LayerList& layers) {
  AppendStem(resnet.stem(), 64, layers);
  AppendStages({.zero_init = resnet.zero_init()}, {2, 2, 2, 2}, 64, layers);
  AppendHead(resnet.classes(), layers);
}

void AppendResnet50(const v1::Resnet50& resnet, LayerList& layers) {
  AppendStem(resnet.stem(), 64, layers);
  AppendStages({.bottleneck = true, .zero_init = resnet.zero_init()}, {3, 4, 6, 3}, 64, layers);
  AppendHead(resnet.classes(), layers);
}

}  // namespace leeway
