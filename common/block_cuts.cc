#include "common/block_cuts.h"

namespace leeway {

BlockCuts BlockCutsOf(const v1::ModelSchema& schema) {
  BlockCuts cuts;
  for (const v1::TensorSpec& tensor : schema.tensors()) {
    if (tensor.begins_block() && tensor.offset() > 0) cuts.push_back(tensor.offset());
  }
  return cuts;
}

}  // namespace leeway
