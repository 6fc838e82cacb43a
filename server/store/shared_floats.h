// Float buffers that are written once and then read by many threads. They are the unit of
// copy-on-write.
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

// A counted reference to a buffer. Copies may be used in any thread; a single object is not
// thread-safe. std::shared_ptr is not used, because it would allocate memory for every version.
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

  // Returns the values for writing. Call this only while no other reference exists: after
  // FloatPool::Take, and before the first copy.
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

// Supplies buffers of one size, and gets each buffer back when its last reference is gone. The most
// recently returned buffer is reused first, because it is most likely in a cache. Thread-safe.
class FloatPool : public std::enable_shared_from_this<FloatPool> {
 public:
  // Buffers come from `memory` while it has room, and otherwise from the heap. If `memory` is null,
  // all buffers come from the heap.
  static std::shared_ptr<FloatPool> Make(size_t floats,
                                         std::shared_ptr<SharedArena> memory = nullptr) {
    return std::shared_ptr<FloatPool>(new FloatPool(floats, std::move(memory)));
  }
  // Returns a buffer. Its contents are undefined (zero if the buffer is new).
  SharedFloats Take();

 private:
  friend class SharedFloats;
  using Node = SharedFloats::Node;
  FloatPool(size_t floats, std::shared_ptr<SharedArena> memory);
  // Allocates memory for values. No other function does so.
  std::unique_ptr<Node> Allocate() const;
  void GiveBack(std::unique_ptr<Node> node);

  const size_t floats_;
  const std::shared_ptr<SharedArena> memory_;
  // The maximum number of idle buffers that the pool keeps for reuse. Further buffers return to the
  // operating system, or to the arena, which keeps its pages.
  const size_t idle_max_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Node>> idle_ GUARDED_BY(mutex_);
};

}  // namespace leeway
