// A vector of a job's model that exists twice: a host twin and a device twin.
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

// The host twin is sent, received and saved. Kernels read and write the device twin. If the device
// works in the host's memory, both are the same memory, and nothing is copied. Otherwise a write to
// one twin does not change the other until Up or Down copies it. Movable. The vector must not
// outlive its backend. Destroy the vector only when the device does not use it any more.
class FlatVector {
 public:
  FlatVector() = default;
  FlatVector(FlatVector&&) = default;
  FlatVector& operator=(FlatVector&& other) noexcept {
    // Unpins the memory first, because it must be unpinned before it is freed.
    pinned_.reset();
    backend_ = other.backend_;
    size_ = other.size_;
    host_ = std::move(other.host_);
    pinned_ = std::move(other.pinned_);
    device_ = std::move(other.device_);
    return *this;
  }
  // Makes a vector with both twins. The device twin is undefined until it is written. Returns
  // RESOURCE_EXHAUSTED if the device lacks memory.
  static absl::StatusOr<FlatVector> Twins(Backend& backend, FloatBuffer host);
  // Makes a vector of `size` zeros with a device twin only. The host can copy it with Copy and Set.
  static absl::StatusOr<FlatVector> OnDevice(Backend& backend, size_t size);

  size_t size() const { return size_; }
  // Returns the host twin. It is empty if OnDevice made the vector and the device has memory of its
  // own.
  std::span<float> host() { return host_.span(); }
  std::span<const float> host() const { return host_.span(); }
  std::span<float> device() { return {Device(), size_}; }
  std::span<const float> device() const { return {Device(), size_}; }

  // Copies the elements from the host twin to the device twin, and waits. Returns the device's
  // error.
  absl::Status Up(const ElementRange& elements);
  absl::Status Up() { return Up({0, size_}); }
  // Copies the elements from the device twin, as queued kernels leave them, to the host twin, and
  // waits. Returns the device's error.
  absl::Status Down(const ElementRange& elements);
  absl::Status Down() { return Down({0, size_}); }

  // StartUp and StartDown are Up and Down without the wait: the copy is done when the returned
  // event is done. Before the call, the stream must wait for all kernels that use the vector. Later
  // users of the vector must wait for the event.
  StreamEvent StartUp(const ElementRange& elements);
  StreamEvent StartDown(const ElementRange& elements);

  // Waits, and returns a copy of the device twin. If the host shares the device's memory, the
  // result refers to this vector instead. Returns the device's error.
  absl::StatusOr<FloatBuffer> Copy() const;
  // Sets the device twin to `values`, and waits. Returns the device's error.
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
