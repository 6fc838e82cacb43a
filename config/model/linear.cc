// Models without hidden layers.
#include "config/model/named_models.h"
#include "config/model/parts.h"

namespace leeway {
namespace {

// Appends one dense layer. The problem is convex, so training may start from any weights.
void AppendLinear(LayerList& layers, const std::string& name, uint32_t units) {
  v1::Dense& dense = *AppendLayer(layers, name).mutable_dense();
  dense.set_units(units);
  dense.set_initializer(v1::INITIALIZER_ZEROS);
}

}  // namespace

void AppendLogistic(const v1::Logistic&, LayerList& layers) { AppendLinear(layers, "linear", 1); }

void AppendSoftmax(const v1::Softmax& softmax, LayerList& layers) {
  AppendLinear(layers, "linear", softmax.classes());
}

void AppendFactorizationMachine(const v1::FactorizationMachine& machine, LayerList& layers) {
  v1::Residual& sum = *AppendLayer(layers, "score").mutable_residual();
  AppendLayer(*sum.mutable_layers(), "factors")
      .mutable_factor_interaction()
      ->set_factors(machine.factors());
  AppendLinear(*sum.mutable_shortcut(), "linear", 1);
}

}  // namespace leeway
