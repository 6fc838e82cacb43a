#include "worker/device/cuda/queue.h"

#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace leeway::cuda {
namespace {

// If a stream has this number of pending events, the queue checks their state even if no caller
// asks.
constexpr size_t kPendingMany = 64;

}  // namespace

Queue::~Queue() {
  // Waits, because work in progress uses memory that is about to be freed.
  (void)runtime_->AwaitAll();
  for (Line& line : lines_) {
    for (const Pending& pending : line.pending) (void)runtime_->DestroyEvent(pending.event);
  }
  for (void* event : free_events_) (void)runtime_->DestroyEvent(event);
}

bool Queue::Begin(Stream stream, const char* what) {
  if (!status_.ok()) return false;
  what_ = what;
  log_.Queued(stream, what);
  return true;
}

void Queue::End(Stream stream, Code code) {
  if (code != kSuccess) {
    // CUDA may report here that earlier work has failed.
    const std::string suspects = log_.Suspects();
    return FailBy(code, suspects == what_
                            ? absl::StrCat("queueing ", what_)
                            : absl::StrCat("queueing ", what_, " or running ", suspects));
  }
  if (!blocking_) return;
  if (const Code done = runtime_->AwaitAll(); done != kSuccess) {
    return FailBy(done, absl::StrCat("running ", what_));
  }
  log_.Done(stream, log_.Mark(stream));
}

void Queue::CopyToDevice(Stream stream, std::span<const float> host, float* device) {
  if (host.empty() || !Begin(stream, "CopyToDevice")) return;
  End(stream, runtime_->CopyUp(stream, host.data(), device, host.size_bytes()));
}

void Queue::CopyToHost(Stream stream, const float* device, std::span<float> host) {
  if (host.empty() || !Begin(stream, "CopyToHost")) return;
  End(stream, runtime_->CopyDown(stream, device, host.data(), host.size_bytes()));
}

void Queue::CopyInside(size_t count, const float* from, float* to) {
  if (count == 0 || !Begin(Stream::kCompute, "Copy")) return;
  End(Stream::kCompute, runtime_->CopyInside(from, to, count * sizeof(float)));
}

void Queue::Multiply(const BlasProduct& product) {
  if (!Begin(Stream::kCompute, "Gemm")) return;
  End(Stream::kCompute, runtime_->Multiply(product));
}

bool Queue::TakesConvolution(const Convolution& convolution) {
  Convolver* const convolver = runtime_->convolver();
  if (convolver == nullptr || !status_.ok()) return false;
  bool takes = false;
  const Code code = convolver->Prepare(convolution, &takes);
  if (code != kSuccess) FailBy(code, "choosing a convolution algorithm");
  return takes && code == kSuccess;
}

bool Queue::Convolve(const char* what, const Convolution& convolution, const float* a,
                     const float* b, float* out) {
  if (!Begin(Stream::kCompute, what)) return true;
  bool takes = true;
  const Code code = runtime_->convolver()->Run(convolution, a, b, out, &takes);
  if (takes) End(Stream::kCompute, code);
  return takes;
}

bool Queue::BeginKernel(const char* what) {
  if (!Begin(Stream::kCompute, what)) return false;
  const Code code = runtime_->BeforeLaunch();
  if (code != kSuccess) FailBy(code, absl::StrCat("queueing ", what));
  return code == kSuccess;
}

void Queue::EndKernel() { End(Stream::kCompute, runtime_->AfterLaunch()); }

void* Queue::TakeEvent() {
  if (free_events_.empty()) {
    void* event = nullptr;
    const Code code = runtime_->MakeEvent(&event);
    if (code != kSuccess) FailBy(code, "making an event");
    return event;
  }
  void* const event = free_events_.back();
  free_events_.pop_back();
  return event;
}

StreamEvent Queue::Record(Stream stream) {
  Line& line = Of(stream);
  const StreamEvent made{4 * ++line.recorded + static_cast<uint64_t>(stream)};
  if (!status_.ok()) return made;
  Trim(stream);
  void* const event = TakeEvent();
  if (event == nullptr) return made;
  // The event is in the list from now on, so that it is destroyed even if recording fails.
  line.pending.push_back({made.number, event, log_.Mark(stream)});
  const Code code = runtime_->Record(event, stream);
  if (code != kSuccess) FailBy(code, "recording an event");
  return made;
}

Queue::Pending* Queue::Find(StreamEvent event) {
  if (event.number == 0) return nullptr;
  for (Pending& pending : Of(StreamOf(event)).pending) {
    if (pending.number == event.number) return &pending;
  }
  return nullptr;
}

void Queue::Complete(StreamEvent event) {
  const Stream stream = StreamOf(event);
  Line& line = Of(stream);
  while (!line.pending.empty() && line.pending.front().number <= event.number) {
    const Pending& first = line.pending.front();
    log_.Done(stream, first.mark);
    // The event can be reused: a stream that waits for it waits for the recording that was current
    // when the wait was queued, not for a later one.
    free_events_.push_back(first.event);
    line.pending.pop_front();
  }
}

void Queue::Trim(Stream stream) {
  Line& line = Of(stream);
  if (line.pending.size() < kPendingMany) return;
  while (!line.pending.empty() && runtime_->Query(line.pending.front().event) == kSuccess) {
    Complete({line.pending.front().number});
  }
}

void Queue::Wait(Stream stream, StreamEvent event) {
  // A stream runs its work in order, so it does not have to wait for its own events.
  if (!status_.ok() || StreamOf(event) == stream) return;
  const Pending* const pending = Find(event);
  if (pending == nullptr) return;
  const Code code = runtime_->Wait(stream, pending->event);
  if (code != kSuccess) FailBy(code, "making a stream wait for an event");
}

bool Queue::Done(StreamEvent event) {
  if (event.number == 0) return true;
  if (!status_.ok()) return false;
  const Pending* const pending = Find(event);
  if (pending == nullptr) return true;
  const Code code = runtime_->Query(pending->event);
  if (code == kNotReady) return false;
  if (code == kSuccess) {
    Complete(event);
    return true;
  }
  FailBy(code, absl::StrCat("running ", log_.Suspects()));
  return false;
}

absl::Status Queue::Await(StreamEvent event) {
  if (!status_.ok()) return status_;
  const Pending* const pending = Find(event);
  if (pending == nullptr) return status_;
  const Code code = runtime_->Await(pending->event);
  if (code == kSuccess) {
    Complete(event);
  } else {
    FailBy(code, absl::StrCat("running ", log_.Suspects()));
  }
  return status_;
}

void Queue::Fail(absl::Status why) {
  if (status_.ok()) status_ = std::move(why);
}

void Queue::FailBy(Code code, absl::string_view doing) {
  if (runtime_->OutOfMemory(code)) {
    return Fail(absl::ResourceExhaustedError(absl::StrCat(
        runtime_->device(), " ran out of memory while ", doing, ": ", runtime_->Describe(code),
        "; make data.batch_size smaller, or let fewer processes share the device")));
  }
  Fail(absl::InternalError(
      absl::StrCat(runtime_->device(), " failed while ", doing, ": ", runtime_->Describe(code),
                   blocking_ ? "" : " (set LEEWAY_CUDA_BLOCKING=1 to find out which one failed)")));
}

}  // namespace leeway::cuda
