// A fake device. It shows and reports the errors that a GPU would make silently.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/worker/device/fake_streams.h"
#include "tests/worker/device/happens_before.h"
#include "tests/worker/device/split_memory.h"
#include "tests/worker/device/wrapped_backend.h"
#include "worker/compute/backend.h"
#include "worker/compute/precision.h"

namespace leeway::testing {

class FakeDevice;

// What a program that drives a device can do wrong. The device makes the mistake in the program's
// place.
enum class Mistake {
  // A stream does not wait for an event.
  kMissingEvent,
  // A stream waits for the previous record of an event in place of the latest.
  kWaitBeforeRecord,
  // An event stands for work that was done long ago.
  kEventReused,
  // The host takes unfinished work for done.
  kStaleCounter,
  // An event is recorded before the copy that it stands for.
  kFlagBeforeData,
  // The host reads without waiting.
  kEarlyHostRead,
  // A kernel uses memory as scratch that a copy still reads.
  kSharedScratch,
  // Memory is pinned while it is being copied.
  kLatePin,
  kUnpinInFlight,
  // A copy to the device goes to the stream of copies to the host, or the other way round.
  kWrongStream,
  // A failure is not reported.
  kLostError,
  // A copy omits the last element.
  kPartialTail,
  // Values that change from step to step (dropout's counter, an optimizer's step) keep their first
  // value.
  kFrozenStep,
};
inline constexpr size_t kMistakes = 13;

// Work takes as long as moving its bytes: those that a kernel reads and writes, or that a copy
// carries over the bus.
struct EmulatedTimes {
  double kernel_bytes_a_second = 1e9;
  double bus_bytes_a_second = 1e9;
  FakeStreams::Clock clock;
};

struct FakeDeviceOptions {
  // Determines the order in which streams run.
  uint64_t seed = 0;
  size_t memory_bytes = size_t{64} << 20;
  // The threads of the CPU backend that computes the kernels; the device has its bits.
  uint32_t threads = 1;
  Precision precision = Precision::kFp32;
  // Cuts products as the CPU does, whose bits differ from those of whole products.
  bool cuts_products = true;
  // How much of the work that may run does run before the host waits for it. 0: nothing; below 1:
  // nearly all; absent: the seed decides.
  std::optional<double> eagerness = std::nullopt;
  // The occasion, counted from 0, at which the mistake is made; absent: every occasion.
  std::optional<Mistake> mistake = std::nullopt;
  std::optional<uint64_t> occasion = std::nullopt;
  // The piece of work, counted from 0, that fails, and the device with it.
  std::optional<uint64_t> fail = std::nullopt;
  // For measurements: times are emulated, and most checks are left out.
  std::optional<EmulatedTimes> times = std::nullopt;
  // Called in the device's destructor.
  std::function<void(const FakeDevice&)> on_end = nullptr;
};

// Computes what the CPU's backend computes, in memory of its own, late, and in any order that
// streams and events allow. It finds
//   - work that is not ordered with other work on the same memory, on every seed;
//   - kernels that read memory that was never written, and kernels that use the host's memory;
//   - copies whose host memory was touched before they were done, or is in use (HostBegins);
//   - memory that is freed, pinned or unpinned while work on it is queued.
// The first of these errors is its status(), as an error of a GPU would be.
class FakeDevice final : public WrappedBackend {
 public:
  static absl::StatusOr<std::unique_ptr<FakeDevice>> Make(const FakeDeviceOptions& options);
  ~FakeDevice() override {
    if (options_.on_end) options_.on_end(*this);
  }

  // How often the mistake could have been made so far.
  uint64_t occasions(Mistake mistake) const { return occasions_[static_cast<size_t>(mistake)]; }
  // How many pieces of work were queued so far.
  uint64_t queued() const { return queued_; }
  // The bytes that were copied to the device, and to the host, so far.
  uint64_t bytes_up() const { return bytes_up_; }
  uint64_t bytes_down() const { return bytes_down_; }
  // The copied bytes whose host memory was not pinned.
  uint64_t unpinned_bytes() const { return unpinned_bytes_; }

  // From now on until HostEnds, code on the host, such as a client that sends a contribution, reads
  // (or writes) this memory: no copy may write (or read) there.
  void HostBegins(std::span<const float> memory, bool writes);
  void HostEnds(std::span<const float> memory);

  absl::StatusOr<DeviceMemory> Allocate(size_t count) override;
  bool shares_host_memory() const override { return false; }
  bool cuts_products() const override { return options_.cuts_products; }
  PinnedMemory Pin(std::span<float> host) override;

  void CopyToDevice(Stream stream, std::span<const float> host, float* device) override;
  void CopyToHost(Stream stream, const float* device, std::span<float> host) override;
  StreamEvent Record(Stream stream) override;
  void Wait(Stream stream, StreamEvent event) override;
  bool Done(StreamEvent event) override;
  absl::Status Await(StreamEvent event) override;
  absl::Status status() const override;

  // These two can make the mistake kFrozenStep.
  void Update(const VectorUpdate& update, float* finite) override;
  void DropoutForward(size_t count, float rate, const DropoutKey& key, const float* x, float* mask,
                      float* y) override;

 protected:
  void Free(float* data) override;
  void Unpin(float* host) override;
  // Queues the kernel in the compute stream, on the device's memory.
  void Run(const char* what, const std::vector<Operand>& operands, Kernel kernel) override;

 private:
  FakeDevice(const FakeDeviceOptions& options, std::unique_ptr<SplitMemory> memory,
             std::unique_ptr<Backend> cpu)
      : WrappedBackend(std::move(cpu)),
        options_(options),
        memory_(std::move(memory)),
        streams_(options.seed, options.eagerness,
                 options.times.has_value() ? std::optional(options.times->clock) : std::nullopt) {}

  template <typename T>
  static Access Reads(const T* data, size_t count = 1) {
    return {data, count * sizeof(T), false};
  }
  template <typename T>
  static Access Writes(const T* data, size_t count = 1) {
    return {data, count * sizeof(T), true};
  }
  void Queue(Stream stream, const char* what, const std::vector<Access>& accesses,
             std::function<void()> work);
  // Checks that the accesses' memory is the device's, and that what is read has been written.
  void CheckBeforeRun(const char* what, const std::vector<Access>& accesses);
  // Whether the mistake is to be made. Counts the occasion.
  bool Makes(Mistake mistake) const;
  Duration TimeOf(const char* what, const std::vector<Access>& accesses) const;
  bool IsPinned(std::span<const float> host) const;
  // Pins too late and unpins too early, where that is the mistake.
  void AfterCopy(std::span<const float> host);
  // Copies the first `count` floats of `host`.
  void QueueUp(Stream stream, std::span<const float> host, float* device, size_t count);
  void QueueDown(Stream stream, const float* device, std::span<float> host);
  void NotePinned(std::span<const float> host);
  // Fails if queued work uses the memory; `done` says what the host does with it.
  void CheckUnused(const Access& memory, const char* done);
  // Queues the work that waits for its stream's next event (kFlagBeforeData).
  void QueueLate(Stream stream);
  void HostSees(StreamEvent event);
  void Fail(absl::Status why);

  const FakeDeviceOptions options_;
  const std::unique_ptr<SplitMemory> memory_;
  FakeStreams streams_;
  HappensBefore order_;
  absl::Status status_;
  // By address: the number of bytes.
  std::map<const float*, size_t> pinned_;
  uint64_t queued_ = 0;
  uint64_t bytes_up_ = 0;
  uint64_t bytes_down_ = 0;
  uint64_t unpinned_bytes_ = 0;

  // By mistake: its occasions so far.
  mutable std::array<uint64_t, kMistakes> occasions_{};
  // By stream: the newest event. And by event: the stream's previous event.
  std::array<StreamEvent, kStreams> recorded_{};
  std::map<uint64_t, StreamEvent> before_;
  std::array<std::function<void()>, kStreams> late_;
  // The memory that the last copy to the host has read, and the event of that copy; null once the
  // host has seen the event.
  const float* last_read_ = nullptr;
  uint64_t last_read_event_ = 0;
  std::span<float> to_pin_;
  std::optional<uint64_t> first_draw_;
  std::optional<UpdateStep> first_step_;
};

}  // namespace leeway::testing
