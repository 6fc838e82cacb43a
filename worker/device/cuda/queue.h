// The three streams of a device, with their queued work, their events, and the first error.
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

// Events come from a pool. The pool grows to the largest number of events in use at the same time,
// so later steps create no events. After an error nothing more is queued. Not thread-safe.
class Queue {
 public:
  // If `blocking` is true, waits for each piece of work before it queues the next one, so that an
  // error names exactly the piece that failed.
  Queue(std::unique_ptr<Runtime> runtime, bool blocking)
      : runtime_(std::move(runtime)), blocking_(blocking) {}
  ~Queue();

  Runtime& runtime() { return *runtime_; }

  void CopyToDevice(Stream stream, std::span<const float> host, float* device);
  void CopyToHost(Stream stream, const float* device, std::span<float> host);
  void CopyInside(size_t count, const float* from, float* to);
  void Multiply(const BlasProduct& product);
  // Returns true if the runtime's convolver computes the convolution.
  bool TakesConvolution(const Convolution& convolution);
  // Queues the convolution. If the convolver refuses it after all, queues nothing and returns
  // false.
  bool Convolve(const char* what, const Convolution& convolution, const float* a, const float* b,
                float* out);
  // These functions are called before and after a kernel's launch (launch.h). If BeginKernel
  // returns false, the caller must not launch the kernel.
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

  // These functions are called before and after work is queued. If Begin returns false, the caller
  // must not queue the work.
  bool Begin(Stream stream, const char* what);
  void End(Stream stream, Code code);
  // Returns the entry of an event that is not known to be done, or null if the event is done.
  Pending* Find(StreamEvent event);
  // Notes that all work of the event's stream up to the event is done.
  void Complete(StreamEvent event);
  // If many events are pending, because no caller has asked for them, returns those that are done
  // to the pool.
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
