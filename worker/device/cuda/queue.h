// The three streams of a device: their queued work, their events, and the first error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "worker/compute/backend.h"
#include "worker/device/cuda/runtime.h"
#include "worker/device/cuda/work_log.h"

namespace leeway::cuda {

// Events come from a pool that grows to the number needed at once, so later steps create none.
// After an error nothing more is queued. Not thread-safe.
class Queue {
 public:
  // With `blocking`, each piece of work is awaited at once, so that an error names exactly that
  // piece.
  Queue(std::unique_ptr<Runtime> runtime, bool blocking)
      : runtime_(std::move(runtime)), blocking_(blocking) {}
  ~Queue();

  Runtime& runtime() { return *runtime_; }

  void CopyToDevice(Stream stream, std::span<const float> host, float* device);
  void CopyToHost(Stream stream, const float* device, std::span<float> host);
  void CopyInside(size_t count, const float* from, float* to);
  void Multiply(const BlasProduct& product);
  // Whether the runtime's convolver takes the convolution.
  bool TakesConvolution(const Convolution& convolution);
  // Queues the convolution. False if the convolver refuses it after all; then nothing is queued.
  bool Convolve(const char* what, const Convolution& convolution, const float* a, const float* b,
                float* out);
  // Called before and after a kernel's launch (launch.h). If BeginKernel returns false, nothing
  // must be launched.
  bool BeginKernel(const char* what);
  void EndKernel();

  StreamEvent Record(Stream stream);
  void Wait(Stream stream, StreamEvent event);
  bool Done(StreamEvent event);
  absl::Status Await(StreamEvent event);
  const absl::Status& status() const { return status_; }
  void Fail(absl::Status why);

 private:
  // A recorded event that is not known to be done.
  struct Pending {
    uint64_t number;
    void* event;
    uint64_t mark;
  };
  struct Line {
    std::deque<Pending> pending;
    uint64_t recorded = 0;
  };
  static Stream StreamOf(StreamEvent event) { return static_cast<Stream>(event.number % 4); }
  Line& Of(Stream stream) { return lines_[static_cast<size_t>(stream)]; }

  // Called before and after work is queued. If Begin returns false, nothing must be queued.
  bool Begin(Stream stream, const char* what);
  void End(Stream stream, Code code);
  // The entry of an event that is not known to be done; null if the event is done.
  Pending* Find(StreamEvent event);
  // Notes that all work of the event's stream up to the event is done.
  void Complete(StreamEvent event);
  // Returns finished events to the pool if many are pending because no caller asks for them.
  void Trim(Stream stream);
  void* TakeEvent();
  void FailBy(Code code, absl::string_view doing);

  const std::unique_ptr<Runtime> runtime_;
  const bool blocking_;
  std::array<Line, kStreams> lines_;
  std::vector<void*> free_events_;
  WorkLog log_;
  // The name of the work that is being queued.
  const char* what_ = "";
  absl::Status status_;
};

}  // namespace leeway::cuda
