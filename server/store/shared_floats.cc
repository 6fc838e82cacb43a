#include "server/store/shared_floats.h"

namespace leeway {

SharedFloats::~SharedFloats() {
  if (node_ == nullptr) return;
  if (node_->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  node_->pool->GiveBack(std::move(node_->values));
  delete node_;
}

SharedFloats FloatPool::Take() {
  auto* node = new SharedFloats::Node;
  node->pool = shared_from_this();
  {
    MutexLock lock(mutex_);
    if (!idle_.empty()) {
      node->values = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (node->values.size() != floats_) node->values = FloatBuffer(floats_);
  return SharedFloats(node);
}

void FloatPool::GiveBack(FloatBuffer values) {
  MutexLock lock(mutex_);
  if (idle_.size() < kIdleMax) idle_.push_back(std::move(values));
}

}  // namespace leeway
