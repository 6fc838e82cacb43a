#include "tests/worker/device/fake_device.h"

#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/compute/eigen/eigen_backend.h"

namespace leeway::testing {

absl::StatusOr<std::unique_ptr<FakeDevice>> FakeDevice::Make(const FakeDeviceOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<SplitMemory> memory, SplitMemory::Make(options.memory_bytes));
  ASSIGN_OR_RETURN(std::unique_ptr<Backend> cpu,
                   EigenBackend::Make(options.threads, options.precision));
  return std::unique_ptr<FakeDevice>(new FakeDevice(options, std::move(memory), std::move(cpu)));
}

absl::StatusOr<DeviceMemory> FakeDevice::Allocate(size_t count) {
  float* const data = memory_->Take(count);
  if (data == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("the device has no room for ",
                                                     count * sizeof(float), " bytes of its ",
                                                     options_.memory_bytes));
  }
  return DeviceMemory(data, DeviceFree{this});
}

void FakeDevice::Free(float* data) {
  CheckUnused(Writes(data, memory_->SizeOf(data) / sizeof(float)), "is freed");
  memory_->GiveBack(data);
}

PinnedMemory FakeDevice::Pin(std::span<float> host) {
  if (Makes(Mistake::kLatePin)) {
    to_pin_ = host;
  } else {
    NotePinned(host);
  }
  return PinnedMemory(host.data(), HostUnpin{this});
}

void FakeDevice::NotePinned(std::span<const float> host) {
  CheckUnused(Writes(host.data(), host.size()), "is pinned");
  pinned_[host.data()] = host.size_bytes();
}

void FakeDevice::Unpin(float* host) {
  const auto found = pinned_.find(host);
  if (found == pinned_.end()) return;
  CheckUnused(Writes(host, found->second / sizeof(float)), "is unpinned");
  pinned_.erase(found);
}

void FakeDevice::CheckUnused(const Access& memory, const char* done) {
  const auto problem = order_.InUse(memory);
  if (problem.has_value()) Fail(absl::InternalError(absl::StrCat("memory ", done, "; ", *problem)));
}

void FakeDevice::HostBegins(std::span<const float> memory, bool writes) {
  const auto problem = order_.HostBegins({memory.data(), memory.size_bytes(), writes});
  if (problem.has_value()) {
    Fail(absl::InternalError(
        absl::StrCat("the host begins to ", writes ? "write" : "read", "; ", *problem)));
  }
}

void FakeDevice::HostEnds(std::span<const float> memory) { order_.HostEnds(memory.data()); }

bool FakeDevice::Makes(Mistake mistake) const {
  const uint64_t occasion = occasions_[static_cast<size_t>(mistake)]++;
  return options_.mistake == mistake && options_.occasion.value_or(occasion) == occasion;
}

void FakeDevice::CopyToDevice(Stream stream, std::span<const float> host, float* device) {
  if (Makes(Mistake::kWrongStream)) stream = Stream::kDown;
  const bool partial = Makes(Mistake::kPartialTail);
  QueueUp(stream, host, device, partial ? host.size() - 1 : host.size());
}

void FakeDevice::CopyToHost(Stream stream, const float* device, std::span<float> host) {
  if (Makes(Mistake::kWrongStream)) stream = Stream::kUp;
  if (Makes(Mistake::kPartialTail)) {
    // The host finds memory there that was never written.
    Poison(&host.back(), sizeof(float));
    host = host.first(host.size() - 1);
  }
  last_read_ = device;
  last_read_event_ = 0;
  if (Makes(Mistake::kFlagBeforeData)) {
    late_[static_cast<size_t>(stream)] = [=, this] { QueueDown(stream, device, host); };
    return;
  }
  QueueDown(stream, device, host);
}

void FakeDevice::QueueLate(Stream stream) {
  const std::function<void()> late = std::exchange(late_[static_cast<size_t>(stream)], nullptr);
  if (late) late();
}

void FakeDevice::QueueUp(Stream stream, std::span<const float> host, float* device, size_t count) {
  bytes_up_ += host.size_bytes();
  if (!IsPinned(host)) unpinned_bytes_ += host.size_bytes();
  std::vector<float> before;
  if (!options_.times.has_value()) before.assign(host.begin(), host.end());
  Queue(stream, "CopyToDevice", {Reads(host.data(), host.size()), Writes(device, host.size())},
        [this, host, device, count, before = std::move(before)] {
          if (std::memcmp(host.data(), before.data(), before.size() * sizeof(float)) != 0) {
            Fail(absl::InternalError("the host changed what CopyToDevice had still to read"));
          }
          // Work must not use what was there before the copy.
          Poison(memory_->Inside(device), host.size_bytes());
          std::memcpy(memory_->Inside(device), host.data(), count * sizeof(float));
        });
  AfterCopy(host);
}

void FakeDevice::QueueDown(Stream stream, const float* device, std::span<float> host) {
  bytes_down_ += host.size_bytes();
  if (!IsPinned(host)) unpinned_bytes_ += host.size_bytes();
  Queue(stream, "CopyToHost", {Reads(device, host.size()), Writes(host.data(), host.size())},
        [this, device, host] {
          for (const float& value : host) {
            if (options_.times.has_value()) break;
            if (FirstPoisoned(&value, 1) == 0) continue;
            Fail(absl::InternalError("the host wrote where CopyToHost had still to write"));
            break;
          }
          std::memcpy(host.data(), memory_->Inside(device), host.size_bytes());
        });
  AfterCopy(host);
}

bool FakeDevice::IsPinned(std::span<const float> host) const {
  auto after = pinned_.upper_bound(host.data());
  if (after == pinned_.begin()) return false;
  const auto& [begin, bytes] = *--after;
  return host.data() + host.size() <= begin + bytes / sizeof(float);
}

void FakeDevice::AfterCopy(std::span<const float> host) {
  const bool pins = to_pin_.data() != nullptr && host.data() >= to_pin_.data() &&
                    host.data() < to_pin_.data() + to_pin_.size();
  if (pins) NotePinned(std::exchange(to_pin_, {}));
  if (!IsPinned(host) || !Makes(Mistake::kUnpinInFlight)) return;
  Unpin(const_cast<float*>((--pinned_.upper_bound(host.data()))->first));
}

StreamEvent FakeDevice::Record(Stream stream) {
  const StreamEvent event = streams_.Record(stream);
  order_.Record(stream, event);
  if (stream == Stream::kDown && last_read_event_ == 0) last_read_event_ = event.number;
  QueueLate(stream);
  before_[event.number] = std::exchange(recorded_[static_cast<size_t>(stream)], event);
  if (Makes(Mistake::kEventReused)) return {};
  return event;
}

void FakeDevice::Wait(Stream stream, StreamEvent event) {
  if (Makes(Mistake::kMissingEvent)) return;
  if (Makes(Mistake::kWaitBeforeRecord)) event = before_[event.number];
  streams_.Wait(stream, event);
  order_.Wait(stream, event);
}

bool FakeDevice::Done(StreamEvent event) {
  streams_.Advance();
  if (!status().ok()) return false;
  if (!streams_.IsDone(event)) return Makes(Mistake::kStaleCounter);
  HostSees(event);
  return true;
}

absl::Status FakeDevice::Await(StreamEvent event) {
  if (Makes(Mistake::kEarlyHostRead)) {
    // Otherwise the host would go on with memory that unfinished work still reads or writes.
    if (!streams_.IsDone(event)) Fail(absl::InternalError("the host does not wait for its device"));
    return status();
  }
  if (!streams_.RunUntil(event)) Fail(absl::InternalError("an event is awaited that never comes"));
  if (status_.ok()) HostSees(event);
  return status();
}

void FakeDevice::HostSees(StreamEvent event) {
  order_.HostSees(event);
  if (last_read_event_ != 0 && event.number >= last_read_event_) last_read_ = nullptr;
}

absl::Status FakeDevice::status() const {
  if (!status_.ok() && options_.mistake == Mistake::kLostError) return absl::OkStatus();
  return status_;
}

void FakeDevice::Update(const VectorUpdate& update, float* finite) {
  VectorUpdate made = update;
  if (!first_step_.has_value()) first_step_ = update.step;
  if (update.step.number != first_step_->number && Makes(Mistake::kFrozenStep)) {
    made.step = *first_step_;
  }
  WrappedBackend::Update(made, finite);
}

void FakeDevice::DropoutForward(size_t count, float rate, const DropoutKey& key, const float* x,
                                float* mask, float* y) {
  DropoutKey drawn = key;
  if (!first_draw_.has_value()) first_draw_ = key.stream;
  if (key.stream != *first_draw_ && Makes(Mistake::kFrozenStep)) drawn.stream = *first_draw_;
  WrappedBackend::DropoutForward(count, rate, drawn, x, mask, y);
}

void FakeDevice::Run(const char* what, const std::vector<Operand>& operands, Kernel kernel) {
  std::vector<Access> accesses;
  for (const Operand& operand : operands) {
    if (operand.data == nullptr) continue;
    const float* row = static_cast<const float*>(operand.data) + operand.first;
    for (size_t i = 0; i < operand.rows; ++i, row += operand.stride) {
      if (operand.read) accesses.push_back(Reads(row, operand.columns));
      if (operand.written) accesses.push_back(Writes(row, operand.columns));
    }
  }
  if (last_read_ != nullptr && Makes(Mistake::kSharedScratch)) {
    accesses.push_back(Writes(last_read_));
  }
  Queue(Stream::kCompute, what, accesses, [this, kernel = std::move(kernel)] {
    kernel(Places([this](void* data) { return memory_->Inside(data); }));
  });
}

void FakeDevice::Queue(Stream stream, const char* what, const std::vector<Access>& accesses,
                       std::function<void()> work) {
  const bool fails = queued_++ == options_.fail;
  if (!status_.ok()) return;
  if (options_.times.has_value()) return streams_.Queue(stream, work, TimeOf(what, accesses));
  if (const auto problem = order_.Queue(stream, what, accesses)) {
    return Fail(absl::InternalError(*problem));
  }
  for (const Access& access : accesses) {
    // Memory on the host that a copy has not written yet is visibly wrong.
    if (access.writes && !memory_->Holds(access.data, access.bytes)) {
      if (std::strcmp(what, "CopyToHost") != 0) {
        return Fail(absl::InternalError(absl::StrCat(what, " writes what is not the device's")));
      }
      Poison(const_cast<void*>(access.data), access.bytes);
    }
  }
  streams_.Queue(stream, [this, what, accesses, fails, work = std::move(work)] {
    if (!status_.ok()) return;
    if (fails) return Fail(absl::InternalError(absl::StrCat(what, ": the device has failed")));
    CheckBeforeRun(what, accesses);
    if (status_.ok()) work();
  });
}

Duration FakeDevice::TimeOf(const char* what, const std::vector<Access>& accesses) const {
  uint64_t bytes = 0;
  for (const Access& access : accesses) bytes += access.bytes;
  const bool copies = absl::StartsWith(what, "CopyTo");
  // A copy lists its bytes twice, as read and as written.
  return FromSeconds(copies ? static_cast<double>(bytes) / 2 / options_.times->bus_bytes_a_second
                            : static_cast<double>(bytes) / options_.times->kernel_bytes_a_second);
}

void FakeDevice::CheckBeforeRun(const char* what, const std::vector<Access>& accesses) {
  for (const Access& access : accesses) {
    if (access.writes) continue;
    const bool is_inside = memory_->Holds(access.data, access.bytes);
    const auto* const data = static_cast<const float*>(access.data);
    if (!is_inside && std::strcmp(what, "CopyToDevice") != 0) {
      return Fail(absl::InternalError(absl::StrCat(what, " reads what is not the device's")));
    }
    const float* const values = is_inside ? memory_->Inside(data) : data;
    const size_t count = access.bytes / sizeof(float);
    const size_t bad = FirstPoisoned(values, count);
    if (bad == count) continue;
    return Fail(absl::InternalError(
        absl::StrCat(what, " reads what nobody has written: element ", bad, " of ", count)));
  }
}

void FakeDevice::Fail(absl::Status why) {
  if (status_.ok()) status_ = std::move(why);
  streams_.Stop();
}

}  // namespace leeway::testing
