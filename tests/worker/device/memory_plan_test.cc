// What a batch takes of a device's memory: the plan's figures, and the device's own.
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tests/worker/device/device_steps.h"
#include "tests/worker/device/says.h"

namespace leeway::testing::memory_plan {
namespace {

constexpr size_t kBatch = 32;

// The fake device aligns its allocations to this.
constexpr uint64_t kAlign = 256;

uint64_t BytesOf(const MemoryPlan& plan) { return plan.total() * sizeof(float) + kAlign; }

MemoryPlan PlanOf(size_t batch, Backend& backend, bool own_memory = true) {
  return BuildModel(kEveryLayer, kImage, 3, backend)->PlanMemory(batch, own_memory);
}

absl::Status ReserveOn(uint64_t bytes, size_t batch) {
  const auto device = Device({.memory_bytes = bytes});
  return BuildModel(kEveryLayer, kImage, 3, *device)->Reserve(batch);
}

TEST_CASE("A batch fits into what its plan says, and not into less") {
  const auto cpu = TestBackend();
  for (const size_t batch : {1u, 7u, 32u, 300u}) {
    const MemoryPlan plan = PlanOf(batch, *cpu);
    CAPTURE(batch, BytesOf(plan));
    CHECK(ReserveOn(BytesOf(plan), batch).ok());
    // The device's own memory is whole pages.
    CHECK(absl::IsResourceExhausted(ReserveOn(BytesOf(plan) - 8192, batch)));
  }
}

TEST_CASE("A plan is the sum of its parts, and a CPU's has no copies") {
  const auto cpu = TestBackend();
  const MemoryPlan device = PlanOf(kBatch, *cpu), host = PlanOf(kBatch, *cpu, false);
  CHECK(host.batch == 0);
  CHECK(host.vectors == 0);
  CHECK(host.activations() == device.activations());
  CHECK(device.total() == host.total() + device.batch + device.vectors);
  CHECK(device.batch >= kBatch * (kFeatures + 1));
  // 8 x 8 x 3 values of each example.
  CHECK(device.layers[0] >= kBatch * 8 * 8 * 3);
}

TEST_CASE("A batch for which there is no room names the layer and a batch that fits") {
  const auto cpu = TestBackend();
  const uint64_t bytes = BytesOf(PlanOf(kBatch, *cpu));
  const absl::Status refused = ReserveOn(bytes, 10 * kBatch);
  CHECK(absl::IsResourceExhausted(refused));
  INFO(refused);
  CHECK(Says(refused, {"a batch of 320 examples", "batch_norm_1", "MiB", "set data.batch_size"}));
  const std::string text(refused.message());
  const std::string before = text.substr(0, text.find(" fits: set data.batch_size"));
  size_t fits = 0;
  REQUIRE(absl::SimpleAtoi(before.substr(before.rfind(' ')), &fits));
  CHECK(fits >= kBatch);
  CHECK(fits < 10 * kBatch);
  CHECK(ReserveOn(bytes, fits).ok());
  CHECK_FALSE(ReserveOn(bytes, fits + 1).ok());
}

TEST_CASE("A model of which not even one example fits is told so") {
  CHECK(Says(ReserveOn(4096, 4), {"not even one example fits"}));
}

}  // namespace
}  // namespace leeway::testing::memory_plan
