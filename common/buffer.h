// Float buffers that begin at a cache line. Large buffers have pages of their own.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace leeway {

// A buffer of floats, aligned to 64 bytes. Movable, not copyable. A buffer is empty after it has
// been moved from.
class FloatBuffer {
 public:
  // The number of floats in a page.
  static constexpr size_t kPageFloats = 4096 / sizeof(float);

  FloatBuffer() = default;
  // Allocates zeroed floats on the heap. A buffer of at least kPageFloats shares no page with other
  // data, so that it can be pinned.
  explicit FloatBuffer(size_t size) : size_(size) {
    const size_t align = size < kPageFloats ? kAlign : kPageFloats * sizeof(float);
    const size_t bytes = (size * sizeof(float) + align - 1) / align * align;
    data_.reset(static_cast<float*>(std::aligned_alloc(align, bytes == 0 ? align : bytes)),
                std::free);
    if (data_ == nullptr) throw std::bad_alloc();
    std::memset(data_.get(), 0, bytes);
  }
  // Uses the memory at `data`, which belongs to another object (common/shm/shared_memory.h). When
  // the last reference to `data` is dropped, the memory returns to that object. The memory has at
  // least `size` floats, begins at a 64-byte boundary, and keeps its content.
  FloatBuffer(std::shared_ptr<float> data, size_t size) : data_(std::move(data)), size_(size) {}

  FloatBuffer(FloatBuffer&& other) noexcept
      : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  FloatBuffer& operator=(FloatBuffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  size_t size() const { return size_; }
  std::span<float> span() { return {data_.get(), size_}; }
  std::span<const float> span() const { return {data_.get(), size_}; }

 private:
  static constexpr size_t kAlign = 64;
  std::shared_ptr<float> data_;
  size_t size_ = 0;
};

}  // namespace leeway
