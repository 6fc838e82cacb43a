// Float buffers that many may read and, while it is nobody else's, one may write: copy-on-write's
// unit.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/buffer.h"
#include "common/mutex.h"

namespace leeway {

class FloatPool;

// A counted reference to a buffer. Copies may go to any thread; a single object is not thread-safe.
// Not std::shared_ptr, because its use_count() synchronises with nothing, and `unique` must.
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

  // No other reference exists, and what others read through theirs has been read: it may be
  // written. Only meaningful where nobody can copy this very object meanwhile.
  bool unique() const {
    return node_ != nullptr && node_->references.load(std::memory_order_acquire) == 1;
  }
  // Only if unique().
  float* mutable_data() { return node_->values.data(); }

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

// Gives out buffers of one size and takes them back when their last reference goes. Thread-safe.
class FloatPool : public std::enable_shared_from_this<FloatPool> {
 public:
  static std::shared_ptr<FloatPool> Make(size_t floats) {
    return std::shared_ptr<FloatPool>(new FloatPool(floats));
  }
  // Contents undefined (zero when new).
  SharedFloats Take();

 private:
  friend class SharedFloats;
  explicit FloatPool(size_t floats) : floats_(floats) {}
  void GiveBack(FloatBuffer values);

  // What readers held for a moment is reused; more than this is given back to the system.
  static constexpr size_t kIdleMax = 4;

  const size_t floats_;
  Mutex mutex_;
  std::vector<FloatBuffer> idle_ GUARDED_BY(mutex_);
};

}  // namespace leeway
