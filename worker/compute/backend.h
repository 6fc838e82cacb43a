// A device that trains: its kernels, its memory and its streams.
//
// Not thread-safe: one backend serves one model at a time.
//
// A device works by itself: the host queues kernels and copies in streams, and goes on. A stream
// runs its work in order. Only events order the work of different streams. The caller must ensure
// two things:
// - Work that reads what another stream writes, or writes what another stream reads, waits for an
//   event that was recorded after the other stream's work (Record, Wait).
// - Record an event after a copy. Until this event is done (Done, Await), nobody changes the host
//   memory that the copy reads, or uses the host memory that the copy writes.
// The CPU does everything at once, on the caller's thread, so its events are always done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "worker/compute/kernels.h"

namespace leeway {

class Backend;

struct DeviceFree {
  Backend* backend = nullptr;
  void operator()(float* data) const;
};
// Device memory. It must be freed before its backend is destroyed.
using DeviceMemory = std::unique_ptr<float[], DeviceFree>;

struct HostUnpin {
  Backend* backend = nullptr;
  void operator()(float* host) const;
};
// Keeps host memory pinned while this object exists. Null if the device has not pinned the memory.
// The object must be destroyed before the memory and the backend.
using PinnedMemory = std::unique_ptr<float, HostUnpin>;

// Kernels run in kCompute. Copies run in kUp and kDown, one stream for each direction, so that they
// run at the same time as kernels.
enum class Stream : uint8_t { kCompute, kUp, kDown };
inline constexpr size_t kStreams = 3;

// A point in a stream. The event is done when all work that was queued in the stream before the
// event was recorded is done.
struct StreamEvent {
  // The event's number. A default event has the number 0 and is done.
  uint64_t number = 0;
};

class Backend : public Kernels {
 public:
  // ---- memory Allocates `count` floats, aligned to 64 bytes and not initialised. Returns
  // RESOURCE_EXHAUSTED if the memory is not available. The caller may free the memory only when no
  // stream uses it any more.
  virtual absl::StatusOr<DeviceMemory> Allocate(size_t count) = 0;
  // Returns true if host memory is device memory, so that nothing needs to be copied.
  virtual bool shares_host_memory() const = 0;
  // Returns true if a large layer's product is computed panel by panel (layer.h), so that the first
  // panel's results leave while the others are computed. If false, only copies are divided into
  // panels, because the whole product takes less time than its parts.
  virtual bool cuts_products() const { return true; }
  // Pins host memory, if this lets the device copy the memory while the host goes on. Copies of
  // other memory may block. Pinning takes long, so pin only memory that is copied repeatedly.
  // Copies must be done before the memory is unpinned.
  virtual PinnedMemory Pin(std::span<float> host) { return {}; }

  // ---- streams
  virtual void CopyToDevice(Stream stream, std::span<const float> host, float* device) = 0;
  virtual void CopyToHost(Stream stream, const float* device, std::span<float> host) = 0;
  virtual StreamEvent Record(Stream stream) = 0;
  // Makes work that is queued in `stream` after this call begin only when the event is done.
  virtual void Wait(Stream stream, StreamEvent event) = 0;
  // Returns true if the event is done. Never blocks.
  virtual bool Done(StreamEvent event) = 0;
  // Blocks until the event is done or the device has failed. Returns status().
  virtual absl::Status Await(StreamEvent event) = 0;
  // Returns the first error of a kernel or copy. The error names that kernel or copy. The error
  // stays, because results that the device has computed since then are invalid. The process must
  // restart.
  virtual absl::Status status() const = 0;

 protected:
  friend struct DeviceFree;
  friend struct HostUnpin;
  virtual void Free(float* data) = 0;
  virtual void Unpin(float* host) {}
};

inline void DeviceFree::operator()(float* data) const { backend->Free(data); }
inline void HostUnpin::operator()(float* host) const { backend->Unpin(host); }

}  // namespace leeway
