// Runs the tests of models on the fake device: each TestBackend has another seed.
#include "tests/worker/device/fake_device.h"
#include "tests/worker/model/support.h"

namespace leeway::testing {

std::unique_ptr<Backend> TestBackend(uint32_t threads, Precision precision) {
  static uint64_t seed = 0;
  auto device = FakeDevice::Make({.seed = ++seed, .threads = threads, .precision = precision});
  REQUIRE(device.ok());
  return *std::move(device);
}

bool MayKeepDigits(Precision) { return false; }

}  // namespace leeway::testing
