#include "worker/data/dataset.h"

namespace leeway {

void Dataset::Resize(size_t count, Batch& batch) const {
  batch.size = count;
  batch.features.resize(count * shape().elements());
  batch.labels.resize(count * labels_each());
  batch.other_labels.clear();
  batch.share = 1;
  batch.replaced = 0;
}

}  // namespace leeway
