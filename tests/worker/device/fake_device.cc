#include "tests/worker/device/fake_device.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/compute/eigen/eigen_backend.h"

namespace leeway::testing {

absl::StatusOr<std::unique_ptr<FakeDevice>> FakeDevice::Make(const FakeDeviceOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<SplitMemory> memory, SplitMemory::Make(options.memory_bytes));
  ASSIGN_OR_RETURN(std::unique_ptr<Backend> cpu, EigenBackend::Make(options.threads));
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
  const auto problem = order_.Free(Writes(data, memory_->SizeOf(data) / sizeof(float)));
  if (problem.has_value()) Fail(absl::InternalError(*problem));
  memory_->GiveBack(data);
}

void FakeDevice::CopyToDevice(Stream stream, std::span<const float> host, float* device) {
  bytes_up_ += host.size_bytes();
  std::vector<float> before(host.begin(), host.end());
  Queue(stream, "CopyToDevice", {Reads(host.data(), host.size()), Writes(device, host.size())},
        [this, host, device, before = std::move(before)] {
          if (std::memcmp(host.data(), before.data(), host.size_bytes()) != 0) {
            Fail(absl::InternalError("the host changed what CopyToDevice had still to read"));
          }
          std::memcpy(memory_->Inside(device), host.data(), host.size_bytes());
        });
}

void FakeDevice::CopyToHost(Stream stream, const float* device, std::span<float> host) {
  bytes_down_ += host.size_bytes();
  Queue(stream, "CopyToHost", {Reads(device, host.size()), Writes(host.data(), host.size())},
        [this, device, host] {
          for (const float& value : host) {
            if (FirstPoisoned(&value, 1) == 0) continue;
            Fail(absl::InternalError("the host wrote where CopyToHost had still to write"));
            break;
          }
          std::memcpy(host.data(), memory_->Inside(device), host.size_bytes());
        });
}

StreamEvent FakeDevice::Record(Stream stream) {
  const StreamEvent event = streams_.Record(stream);
  order_.Record(stream, event);
  return event;
}

void FakeDevice::Wait(Stream stream, StreamEvent event) {
  if (waits_++ == options_.forget_wait) return;
  streams_.Wait(stream, event);
  order_.Wait(stream, event);
}

bool FakeDevice::Done(StreamEvent event) {
  streams_.Advance();
  if (!status_.ok() || !streams_.IsDone(event)) return not_yet_++ == options_.forget_not_yet;
  order_.HostSees(event);
  return true;
}

absl::Status FakeDevice::Await(StreamEvent event) {
  if (awaits_++ == options_.forget_await) {
    // The host would go on with memory that work which is under way still reads or writes.
    if (!streams_.IsDone(event)) Fail(absl::InternalError("the host does not wait for its device"));
    return status_;
  }
  if (!streams_.RunUntil(event)) Fail(absl::InternalError("an event is awaited that never comes"));
  if (status_.ok()) order_.HostSees(event);
  return status_;
}

void FakeDevice::Kernel(const char* what, std::vector<Access> accesses,
                        std::function<void()> compute) {
  std::erase_if(accesses, [](const Access& access) { return access.data == nullptr; });
  Queue(Stream::kCompute, what, accesses, std::move(compute));
}

void FakeDevice::Queue(Stream stream, const char* what, const std::vector<Access>& accesses,
                       std::function<void()> work) {
  const bool fails = queued_++ == options_.fail;
  if (!status_.ok()) return;
  if (const auto problem = order_.Queue(stream, what, accesses)) {
    return Fail(absl::InternalError(*problem));
  }
  for (const Access& access : accesses) {
    // What a copy has not yet written on the host shows.
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
