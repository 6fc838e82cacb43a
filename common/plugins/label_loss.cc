#include "common/plugins/label_loss.h"

#include "common/plugins/plugins.h"

namespace leeway {

v1::Loss LabelLoss(const v1::Model& model) {
  if (model.loss() != v1::LOSS_CUSTOM) return model.loss();
  const auto plugins = Plugins::Load(model);
  if (!plugins.ok()) return v1::LOSS_SQUARED;
  const auto loss = plugins->Loss(model.custom_loss());
  const bool classes = loss.ok() && loss->spec->labels == plugin::Labels::kClasses;
  return classes ? v1::LOSS_SOFTMAX_CROSS_ENTROPY : v1::LOSS_SQUARED;
}

}  // namespace leeway
