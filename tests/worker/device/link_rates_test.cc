// Rates of copies between host and device.
#include "worker/device/link_rates.h"

#include "tests/worker/device/device_steps.h"

namespace leeway::testing::link_rates {
namespace {

TEST_CASE("Copies of pinned memory are timed up, down, and both ways at once") {
  constexpr size_t kBytes = 4096 * 8;
  constexpr uint64_t kCopies = 4;
  const auto device = Device({});
  const auto rates = MeasureLinkRates(*device, kBytes);
  INFO(rates.status());
  REQUIRE(rates.ok());
  CHECK(rates->up > 0);
  CHECK(rates->down > 0);
  CHECK(rates->both > 0);
  CHECK(device->bytes_up() == 2 * kCopies * kBytes);
  CHECK(device->bytes_down() == 2 * kCopies * kBytes);
  CHECK(device->unpinned_bytes() == 0);
}

TEST_CASE("A device that works in the host's memory, or fails, has no rates") {
  const auto cpu = TestBackend();
  CHECK(absl::IsUnimplemented(MeasureLinkRates(*cpu).status()));
  const auto failing = Device({.fail = 3});
  CHECK(absl::IsInternal(MeasureLinkRates(*failing, 4096).status()));
  const auto small = Device({.memory_bytes = 4096});
  CHECK(absl::IsResourceExhausted(MeasureLinkRates(*small, 1 << 20).status()));
}

}  // namespace
}  // namespace leeway::testing::link_rates
