// Float buffers that one writes and then many read: copy-on-write's unit.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/buffer.h"
#include "common/mutex.h"
#include "common/shm/shared_memory.h"

namespace leeway {

class FloatPool;

// A counted reference to a buffer. Copies may go to any thread; a single object is not thread-safe.
// Not std::shared_ptr, which would allocate for every version.
class SharedFloats {
 public:
  SharedFloats() = default;
  SharedFloats(const SharedFloats& other) : node_(other.node_) { Retain(); }
  SharedFloats(SharedFloats&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  SharedFloats& operator=(SharedFloats other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~SharedFloats();

  explicit operator bool() const { return node_ != nullptr; }
  std::span<const float> span() const { return node_->values.span(); }

  // Only while no other reference exists: from FloatPool::Take until it is shared.
  float* mutable_data() const { return node_->values.data(); }

 private:
  friend class FloatPool;
  struct Node {
    std::atomic<uint32_t> references{1};
    FloatBuffer values;
    std::shared_ptr<FloatPool> pool;
  };
  explicit SharedFloats(Node* node) : node_(node) {}
  void Retain() const {
    if (node_ != nullptr) node_->references.fetch_add(1, std::memory_order_relaxed);
  }

  Node* node_ = nullptr;
};

// Gives out buffers of one size and takes them back when their last reference goes; what came back
// last, which the cache knows best, is given out first. Thread-safe.
class FloatPool : public std::enable_shared_from_this<FloatPool> {
 public:
  // From `memory` for as long as that has some, else from the heap; null: from the heap.
  static std::shared_ptr<FloatPool> Make(size_t floats,
                                         std::shared_ptr<SharedArena> memory = nullptr) {
    return std::shared_ptr<FloatPool>(new FloatPool(floats, std::move(memory)));
  }
  // Contents undefined (zero when new).
  SharedFloats Take();

 private:
  friend class SharedFloats;
  using Node = SharedFloats::Node;
  FloatPool(size_t floats, std::shared_ptr<SharedArena> memory);
  // The one place where memory for values comes from.
  std::unique_ptr<Node> Allocate() const;
  void GiveBack(std::unique_ptr<Node> node);

  const size_t floats_;
  const std::shared_ptr<SharedArena> memory_;
  // What readers held for a moment is reused; more than this is given back: to the system, or to
  // the arena, whose pages stay.
  const size_t idle_max_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Node>> idle_ GUARDED_BY(mutex_);
};

}  // namespace leeway
