// Float buffers on cache-line boundaries.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

namespace leeway {

// `size` zeroed floats aligned to 64 bytes. Movable, not copyable.
class FloatBuffer {
 public:
  FloatBuffer() = default;
  explicit FloatBuffer(size_t size) : size_(size) {
    const size_t bytes = (size * sizeof(float) + kAlign - 1) / kAlign * kAlign;
    data_.reset(static_cast<float*>(std::aligned_alloc(kAlign, bytes == 0 ? kAlign : bytes)));
    if (data_ == nullptr) throw std::bad_alloc();
    std::memset(data_.get(), 0, bytes);
  }

  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  size_t size() const { return size_; }
  std::span<float> span() { return {data_.get(), size_}; }
  std::span<const float> span() const { return {data_.get(), size_}; }

 private:
  static constexpr size_t kAlign = 64;
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };
  std::unique_ptr<float[], Free> data_;
  size_t size_ = 0;
};

}  // namespace leeway
