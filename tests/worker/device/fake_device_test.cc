// That the fake device finds what it is there to find, each on every seed or on most.
#include "tests/worker/device/fake_device.h"

#include <cstring>

#include "tests/worker/model/support.h"

namespace leeway::testing {
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

// y = x, as it should be, but for what `at` leaves out or does.
enum class Mistake {
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

absl::Status Run(Rig& rig, Mistake mistake) {
  FakeDevice& device = *rig.device;
  const auto compute_waits = [&](StreamEvent event) { device.Wait(Stream::kCompute, event); };
  const StreamEvent before = device.Record(Stream::kUp);
  if (mistake != Mistake::kNothingWasWritten) {
    device.CopyToDevice(Stream::kUp, rig.host, rig.x.get());
  }
  if (mistake == Mistake::kHostWritesEarly) rig.host[7] = 5;
  const StreamEvent up = device.Record(Stream::kUp);
  if (mistake == Mistake::kWaitsForAnEarlierEvent) {
    compute_waits(before);
  } else if (mistake != Mistake::kComputeWaitsForNoUpload) {
    compute_waits(up);
  }
  const bool host = mistake == Mistake::kHostMemoryInAKernel;
  device.Copy(kCount, host ? rig.host.data() : rig.x.get(), rig.y.get());
  if (mistake == Mistake::kSecondUploadOverwrites) {
    device.CopyToDevice(Stream::kUp, rig.host, rig.x.get());
  }
  if (mistake == Mistake::kFreedWhileQueued) rig.x.reset();
  if (mistake != Mistake::kDownloadWaitsForNoKernel) {
    device.Wait(Stream::kDown, device.Record(Stream::kCompute));
  }
  device.CopyToHost(Stream::kDown, rig.y.get(), rig.back);
  if (mistake == Mistake::kHostReusesTheTarget) rig.back[5] = 1;
  if (mistake == Mistake::kHostReadsEarly) {
    // What it reads shows.
    if (FirstPoisoned(rig.back.data(), kCount) < kCount) return absl::InternalError("poison");
  }
  return rig.Finish();
}

TEST_CASE("What is right is right on every seed") {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Rig rig(seed);
    REQUIRE(Run(rig, Mistake::kNone).ok());
    CHECK(rig.back == rig.host);
    CHECK(rig.device->bytes_up() == kCount * sizeof(float));
    CHECK(rig.device->bytes_down() == kCount * sizeof(float));
  }
}

TEST_CASE("A missing order between streams is found on every seed") {
  const Mistake mistake =
      GENERATE(Mistake::kComputeWaitsForNoUpload, Mistake::kDownloadWaitsForNoKernel,
               Mistake::kWaitsForAnEarlierEvent, Mistake::kSecondUploadOverwrites);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Rig rig(seed);
    const absl::Status status = Run(rig, mistake);
    CAPTURE(seed, static_cast<int>(mistake));
    REQUIRE(absl::IsInternal(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("nothing orders them"));
  }
}

TEST_CASE("What a kernel may not touch is found on every seed") {
  const auto [mistake, text] =
      GENERATE(std::pair(Mistake::kNothingWasWritten, "reads what nobody has written"),
               std::pair(Mistake::kHostMemoryInAKernel, "reads what is not the device's"),
               std::pair(Mistake::kFreedWhileQueued, "is freed"));
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Rig rig(seed);
    const absl::Status status = Run(rig, mistake);
    CAPTURE(seed, status);
    REQUIRE(absl::IsInternal(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains(text));
  }
}

TEST_CASE("A host that does not wait is found on every seed that lets it") {
  const Mistake mistake =
      GENERATE(Mistake::kHostReadsEarly, Mistake::kHostWritesEarly, Mistake::kHostReusesTheTarget);
  size_t found = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Rig rig(seed);
    const absl::Status status = Run(rig, mistake);
    found += absl::IsInternal(status);
    // Else the copy was done already, and what is there is right.
    if (status.ok() && mistake == Mistake::kHostReadsEarly) CHECK(rig.back == rig.host);
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
      const absl::Status status = Run(rig, Mistake::kNone);
      CAPTURE(seed, at, status);
      REQUIRE(absl::IsInternal(status));
      const char* const what[] = {"CopyToDevice: ", "Copy: ", "CopyToHost: "};
      CHECK_THAT(std::string(status.message()), Catch::StartsWith(what[at]));
      CHECK_FALSE(rig.device->Done(rig.device->Record(Stream::kCompute)));
    }
  }
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
}  // namespace leeway::testing
