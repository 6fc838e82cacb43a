// Sandler et al. 2018 (arXiv:1801.04381). Layers are named as in torchvision.
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "config/model/named_models.h"
#include "config/model/parts.h"

namespace leeway {
namespace {

// A row of table 2. The stride is that of the first block.
struct Stage {
  uint32_t expansion;
  uint32_t channels;
  uint32_t blocks;
  uint32_t stride;
};
constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                             {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

// Appends a convolution, batch norm and ReLU6, as one named part.
void AppendActivated(LayerList& layers, const std::string& name, const ConvPart& conv) {
  LayerList& part = AppendSequence(layers, name);
  AppendConv(part, "0", conv);
  AppendBatchNorm(part, "1");
  AppendLayer(part, "").mutable_relu6();
}

// Section 3.3: expands, filters each channel separately, projects without an activation.
void AppendInvertedBottleneck(LayerList& layers, uint32_t inputs, uint32_t expansion,
                              const ConvPart& out) {
  const uint32_t hidden = inputs * expansion;
  int index = 0;
  if (expansion > 1) {
    AppendActivated(layers, absl::StrCat(index++), {.filters = hidden, .kernel = 1});
  }
  AppendActivated(layers, absl::StrCat(index++),
                  {.filters = hidden, .kernel = 3, .stride = out.stride, .groups = hidden});
  AppendConv(layers, absl::StrCat(index++), {.filters = out.filters, .kernel = 1});
  AppendBatchNorm(layers, absl::StrCat(index));
}

}  // namespace

void AppendMobilenetV2(const v1::MobilenetV2& mobilenet, LayerList& layers) {
  const bool small = mobilenet.stem() == v1::STEM_CIFAR;
  LayerList& features = AppendSequence(layers, "features");
  AppendActivated(features, "0", {.filters = 32, .kernel = 3, .stride = small ? 1u : 2u});
  uint32_t inputs = 32;
  for (const Stage& stage : kStages) {
    const bool first_strides = &stage == &kStages[1];
    for (uint32_t i = 0; i < stage.blocks; ++i) {
      const uint32_t stride = i > 0 || (small && first_strides) ? 1 : stage.stride;
      const std::string name = std::to_string(features.size());
      v1::Layer& block = AppendLayer(features, name);
      LayerList& within = stride == 1 && inputs == stage.channels
                              ? *block.mutable_residual()->mutable_layers()
                              : *block.mutable_sequence()->mutable_layers();
      AppendInvertedBottleneck(AppendSequence(within, "conv"), inputs, stage.expansion,
                               {.filters = stage.channels, .stride = stride});
      inputs = stage.channels;
    }
  }
  AppendActivated(features, std::to_string(features.size()), {.filters = 1280, .kernel = 1});
  AppendLayer(layers, "").mutable_global_avg_pool();
  LayerList& classifier = AppendSequence(layers, "classifier");
  if (mobilenet.dropout() > 0) {
    AppendLayer(classifier, "0").mutable_dropout()->set_rate(mobilenet.dropout());
  }
  AppendDense(classifier, "1", mobilenet.classes());
}

}  // namespace leeway
