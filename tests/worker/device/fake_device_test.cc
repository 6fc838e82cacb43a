// Shows that the fake device finds what it is meant to find, each error on every seed or on most.
#include "tests/worker/device/fake_device.h"

#include <algorithm>
#include <cstring>

#include "tests/worker/model/support.h"

namespace leeway::testing::fake_device {
namespace {

constexpr uint64_t kSeeds = 50;
constexpr size_t kCount = 100;

struct Rig {
  explicit Rig(uint64_t seed) : Rig(FakeDeviceOptions{.seed = seed}) {}
  explicit Rig(const FakeDeviceOptions& options) {
    auto made = FakeDevice::Make(options);
    REQUIRE(made.ok());
    device = *std::move(made);
    x = Memory();
    y = Memory();
  }
  DeviceMemory Memory() {
    auto memory = device->Allocate(kCount);
    REQUIRE(memory.ok());
    return *std::move(memory);
  }
  absl::Status Finish() {
    for (const Stream stream : {Stream::kUp, Stream::kCompute, Stream::kDown}) {
      device->Await(device->Record(stream)).IgnoreError();
    }
    return device->status();
  }

  std::unique_ptr<FakeDevice> device;
  DeviceMemory x, y;
  std::vector<float> host = std::vector<float>(kCount, 3.0f);
  std::vector<float> back = std::vector<float>(kCount);
};

// Computes y = x correctly, except for what the slip leaves out or does wrong.
enum class Slip {
  kNone,
  kComputeWaitsForNoUpload,
  kDownloadWaitsForNoKernel,
  kWaitsForAnEarlierEvent,
  kHostReadsEarly,
  kHostWritesEarly,
  kHostReusesTheTarget,
  kSecondUploadOverwrites,
  kNothingWasWritten,
  kHostMemoryInAKernel,
  kFreedWhileQueued,
};

absl::Status Run(Rig& rig, Slip slip) {
  FakeDevice& device = *rig.device;
  const auto compute_waits = [&](StreamEvent event) { device.Wait(Stream::kCompute, event); };
  const StreamEvent before = device.Record(Stream::kUp);
  if (slip != Slip::kNothingWasWritten) {
    device.CopyToDevice(Stream::kUp, rig.host, rig.x.get());
  }
  if (slip == Slip::kHostWritesEarly) rig.host[7] = 5;
  const StreamEvent up = device.Record(Stream::kUp);
  if (slip == Slip::kWaitsForAnEarlierEvent) {
    compute_waits(before);
  } else if (slip != Slip::kComputeWaitsForNoUpload) {
    compute_waits(up);
  }
  const bool host = slip == Slip::kHostMemoryInAKernel;
  device.Copy(kCount, host ? rig.host.data() : rig.x.get(), rig.y.get());
  if (slip == Slip::kSecondUploadOverwrites) {
    device.CopyToDevice(Stream::kUp, rig.host, rig.x.get());
  }
  if (slip == Slip::kFreedWhileQueued) rig.x.reset();
  if (slip != Slip::kDownloadWaitsForNoKernel) {
    device.Wait(Stream::kDown, device.Record(Stream::kCompute));
  }
  device.CopyToHost(Stream::kDown, rig.y.get(), rig.back);
  if (slip == Slip::kHostReusesTheTarget) rig.back[5] = 1;
  if (slip == Slip::kHostReadsEarly) {
    // The host reads poison.
    if (FirstPoisoned(rig.back.data(), kCount) < kCount) return absl::InternalError("poison");
  }
  return rig.Finish();
}

TEST_CASE("What is right is right on every seed") {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Rig rig(seed);
    REQUIRE(Run(rig, Slip::kNone).ok());
    CHECK(rig.back == rig.host);
    CHECK(rig.device->bytes_up() == kCount * sizeof(float));
    CHECK(rig.device->bytes_down() == kCount * sizeof(float));
  }
}

TEST_CASE("A missing order between streams is found on every seed") {
  const Slip slip = GENERATE(Slip::kComputeWaitsForNoUpload, Slip::kDownloadWaitsForNoKernel,
                             Slip::kWaitsForAnEarlierEvent, Slip::kSecondUploadOverwrites);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Rig rig(seed);
    const absl::Status status = Run(rig, slip);
    CAPTURE(seed, static_cast<int>(slip));
    REQUIRE(absl::IsInternal(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("nothing orders them"));
  }
}

TEST_CASE("What a kernel may not touch is found on every seed") {
  const auto [slip, text] =
      GENERATE(std::pair(Slip::kNothingWasWritten, "reads what nobody has written"),
               std::pair(Slip::kHostMemoryInAKernel, "reads what is not the device's"),
               std::pair(Slip::kFreedWhileQueued, "is freed"));
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Rig rig(seed);
    const absl::Status status = Run(rig, slip);
    CAPTURE(seed, status);
    REQUIRE(absl::IsInternal(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains(text));
  }
}

TEST_CASE("A host that does not wait is found on every seed that lets it") {
  const Slip slip =
      GENERATE(Slip::kHostReadsEarly, Slip::kHostWritesEarly, Slip::kHostReusesTheTarget);
  size_t found = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Rig rig(seed);
    const absl::Status status = Run(rig, slip);
    found += absl::IsInternal(status);
    // Otherwise the copy was already done, and the result is right.
    if (status.ok() && slip == Slip::kHostReadsEarly) CHECK(rig.back == rig.host);
  }
  CHECK(found > kSeeds / 3);
}

TEST_CASE("Memory of the device is out of the host's reach, and its room has an end") {
  Rig rig(FakeDeviceOptions{.memory_bytes = 4096});
  const int file = fileno(std::tmpfile());
  CHECK(write(file, rig.x.get(), 4) == -1);
  CHECK(errno == EFAULT);
  CHECK(absl::IsResourceExhausted(rig.device->Allocate(4096).status()));
  rig.x.reset();
  CHECK(rig.device->Allocate(kCount).ok());
}

TEST_CASE("A device that has failed says what failed, and does nothing more") {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const uint64_t at : {0, 1, 2}) {
      Rig rig(FakeDeviceOptions{.seed = seed, .fail = at});
      const absl::Status status = Run(rig, Slip::kNone);
      CAPTURE(seed, at, status);
      REQUIRE(absl::IsInternal(status));
      const char* const what[] = {"CopyToDevice: ", "Copy: ", "CopyToHost: "};
      CHECK_THAT(std::string(status.message()), Catch::StartsWith(what[at]));
      CHECK_FALSE(rig.device->Done(rig.device->Record(Stream::kCompute)));
    }
  }
}

TEST_CASE("With emulated times copies run while kernels do, and the host waits for their ends") {
  // A clock that only moves while the host waits. 400 bytes over the bus take 4 s; a kernel that
  // reads and writes 400 bytes takes 8 s.
  Time now{};
  const FakeStreams::Clock clock{[&now] { return now; },
                                 [&now](Time time) { now = std::max(now, time); }};
  const EmulatedTimes times{
      .kernel_bytes_a_second = 100, .bus_bytes_a_second = 100, .clock = clock};
  Rig rig(FakeDeviceOptions{.times = times});
  FakeDevice& device = *rig.device;
  device.CopyToDevice(Stream::kUp, rig.host, rig.x.get());
  const StreamEvent up = device.Record(Stream::kUp);
  // The kernel runs beside the copy, not behind it.
  device.Fill(kCount, 1, rig.y.get());
  const StreamEvent filled = device.Record(Stream::kCompute);
  CHECK_FALSE(device.Done(up));
  REQUIRE(device.Await(up).ok());
  CHECK(Seconds(now - Time{}) == Approx(4));
  CHECK(device.Done(filled));
  // This kernel runs behind both, and a copy to the host behind it.
  device.Wait(Stream::kCompute, up);
  device.Copy(kCount, rig.x.get(), rig.y.get());
  device.Wait(Stream::kDown, device.Record(Stream::kCompute));
  device.CopyToHost(Stream::kDown, rig.y.get(), rig.back);
  const StreamEvent down = device.Record(Stream::kDown);
  CHECK_FALSE(device.Done(down));
  REQUIRE(device.Await(down).ok());
  CHECK(Seconds(now - Time{}) == Approx(4 + 8 + 4));
  CHECK(rig.back == rig.host);
}

TEST_CASE("An event that nobody will ever reach is an error, not a wait") {
  // Two streams that wait for each other.
  Rig rig(1);
  FakeDevice& device = *rig.device;
  const StreamEvent later{device.Record(Stream::kUp).number + 1};
  device.Wait(Stream::kUp, later);
  CHECK(device.Record(Stream::kUp).number == later.number);
  CHECK(absl::IsInternal(device.Await(later)));
}

}  // namespace
}  // namespace leeway::testing::fake_device
