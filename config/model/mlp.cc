#include "config/model/named_models.h"
#include "config/model/parts.h"

namespace leeway {

void AppendMlp(const v1::Mlp& mlp, LayerList& layers) {
  for (const uint32_t units : mlp.hidden()) {
    AppendDense(layers, "", units);
    AppendRelu(layers);
  }
  AppendDense(layers, "", mlp.outputs());
}

}  // namespace leeway
