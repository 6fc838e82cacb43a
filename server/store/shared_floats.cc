#include "server/store/shared_floats.h"

#include <algorithm>
#include <utility>

namespace leeway {
namespace {

// A pool keeps kIdleMin idle buffers, or more if they fit into kIdleBytes. The replies in flight
// refer to a few blocks of ordinary size, or to many small blocks.
constexpr size_t kIdleMin = 4;
constexpr size_t kIdleBytes = 16 << 20;

}  // namespace

SharedFloats::~SharedFloats() {
  if (node_ == nullptr) return;
  if (node_->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // Keep the pool alive, because the node may hold the last reference to the pool.
  const std::shared_ptr<FloatPool> pool = std::move(node_->pool);
  pool->GiveBack(std::unique_ptr<Node>(node_));
}

FloatPool::FloatPool(size_t floats, std::shared_ptr<SharedArena> memory)
    : floats_(floats),
      memory_(std::move(memory)),
      idle_max_(std::max(kIdleMin, kIdleBytes / (std::max<size_t>(floats, 1) * sizeof(float)))) {}

SharedFloats FloatPool::Take() {
  std::unique_ptr<Node> node;
  {
    MutexLock lock(mutex_);
    if (!idle_.empty()) {
      node = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (node == nullptr) node = Allocate();
  node->references.store(1, std::memory_order_relaxed);
  node->pool = shared_from_this();
  return SharedFloats(node.release());
}

std::unique_ptr<FloatPool::Node> FloatPool::Allocate() const {
  auto node = std::make_unique<Node>();
  node->values = MakeFloats(memory_.get(), floats_);
  return node;
}

void FloatPool::GiveBack(std::unique_ptr<Node> node) {
  MutexLock lock(mutex_);
  // A buffer that the pool does not keep is freed by `node`, after the lock is released.
  if (idle_.size() < idle_max_) idle_.push_back(std::move(node));
}

}  // namespace leeway
