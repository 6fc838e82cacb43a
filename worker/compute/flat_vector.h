// A vector of a job's model, as the host has it and as the device works on it.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/blocks.h"
#include "common/buffer.h"
#include "worker/compute/backend.h"

namespace leeway {

// The host's twin is what is sent, received and saved; the device's twin is what kernels read and
// write. Where the device works in the host's memory they are one, and nothing is copied. Each twin
// is as new as whoever wrote it last made it: Up and Down copy. Movable; must not outlive its
// backend, and the device must be done with it when it goes.
class FlatVector {
 public:
  FlatVector() = default;
  FlatVector(FlatVector&&) = default;
  FlatVector& operator=(FlatVector&& other) noexcept {
    // Memory goes when it is no longer pinned.
    pinned_.reset();
    backend_ = other.backend_;
    size_ = other.size_;
    host_ = std::move(other.host_);
    pinned_ = std::move(other.pinned_);
    device_ = std::move(other.device_);
    return *this;
  }
  // What the device's twin holds is anything, until it is written. RESOURCE_EXHAUSTED where the
  // device has no room.
  static absl::StatusOr<FlatVector> Twins(Backend& backend, FloatBuffer host);
  // `size` zeros that the host only ever copies.
  static absl::StatusOr<FlatVector> OnDevice(Backend& backend, size_t size);

  size_t size() const { return size_; }
  // Empty for one that was made OnDevice of a device with memory of its own.
  std::span<float> host() { return host_.span(); }
  std::span<const float> host() const { return host_.span(); }
  std::span<float> device() { return {Device(), size_}; }
  std::span<const float> device() const { return {Device(), size_}; }

  // The host's elements to the device; waits. The device's error.
  absl::Status Up(const ElementRange& elements);
  absl::Status Up() { return Up({0, size_}); }
  // The device's elements, as kernels that are queued already leave them, to the host; waits. The
  // device's error.
  absl::Status Down(const ElementRange& elements);
  absl::Status Down() { return Down({0, size_}); }

  // Up and Down without the wait: what is done when the event is. The caller has waited for all
  // kernels that use the vector, and lets others wait for the event.
  StreamEvent StartUp(const ElementRange& elements);
  StreamEvent StartDown(const ElementRange& elements);

  // What the device has, in memory of its own or, where the host shares the device's, in this;
  // waits. The device's error.
  absl::StatusOr<FloatBuffer> Copy() const;
  // The device's become `values`; waits. The device's error.
  absl::Status Set(std::span<const float> values);

 private:
  FlatVector(Backend& backend, size_t size) : backend_(&backend), size_(size) {}
  bool shared() const { return backend_ == nullptr || backend_->shares_host_memory(); }
  float* Device() const { return shared() ? const_cast<float*>(host_.data()) : device_.get(); }

  Backend* backend_ = nullptr;
  size_t size_ = 0;
  FloatBuffer host_;
  PinnedMemory pinned_;
  DeviceMemory device_;
};

}  // namespace leeway
