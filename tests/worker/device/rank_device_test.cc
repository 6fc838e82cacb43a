// Which device the later lives of a rank compute on.
#include "worker/device/rank_device.h"

#include <chrono>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/worker/device/fake_device.h"
#include "tests/worker/device/says.h"
#include "worker/compute/eigen/eigen_backend.h"

namespace leeway::testing::rank_device {
namespace {

using std::chrono::seconds;

// A machine whose GPU cannot be used for the first `gpu_from` attempts.
struct Machine {
  int gpu_from = 0;
  std::vector<std::string> asked = {};
  Duration slept = {};

  absl::StatusOr<std::unique_ptr<Backend>> Open(const std::string& device,
                                                const std::string& began_on) {
    v1::Workers workers;
    workers.set_device(device);
    const auto make = [this](const v1::Workers& wanted,
                             uint32_t) -> absl::StatusOr<std::unique_ptr<Backend>> {
      asked.push_back(wanted.device());
      const bool usable = static_cast<int>(asked.size()) > gpu_from;
      if (wanted.device() != "cpu" && usable) return FakeDevice::Make({});
      if (wanted.device() == "cuda") return absl::NotFoundError("no GPU");
      return EigenBackend::Make(1);
    };
    return OpenRankDevice(make, workers, 3, began_on,
                          {seconds(10), [this](Duration time) { slept += time; }});
  }
};

TEST_CASE("The first life of a rank decides what auto stands for") {
  Machine with, without{.gpu_from = 1};
  CHECK(KindOf(**with.Open("auto", "")) == std::string("cuda"));
  CHECK(KindOf(**without.Open("auto", "")) == std::string("cpu"));
  CHECK(with.asked == std::vector<std::string>{"auto"});
  CHECK(with.slept == Duration::zero());
}

TEST_CASE("A later life takes the CPU that its rank began on, although there is a GPU now") {
  Machine machine;
  CHECK(KindOf(**machine.Open("auto", "cpu")) == std::string("cpu"));
  CHECK(machine.asked == std::vector<std::string>{"cpu"});
}

TEST_CASE("A later life waits for the GPU that its rank began on") {
  Machine machine{.gpu_from = 3};
  CHECK(KindOf(**machine.Open("auto", "cuda")) == std::string("cuda"));
  CHECK(machine.asked.size() == 4);
  CHECK(machine.slept == seconds(6));
}

TEST_CASE("A later life that does not find its GPU in time says so, and another may follow") {
  Machine machine{.gpu_from = 1000};
  const absl::Status status = machine.Open("auto", "cuda").status();
  CHECK(absl::IsUnavailable(status));
  CHECK(Says(status, {"worker 3 began on cuda", "other bits", "no GPU",
                      "--resume --run-dir RUN --set workers.device=cpu"}));
  CHECK(machine.slept == seconds(10));
}

TEST_CASE("A named device is opened once, whatever the rank began on") {
  Machine machine{.gpu_from = 1000};
  CHECK(absl::IsNotFound(machine.Open("cuda", "cpu").status()));
  CHECK(machine.asked.size() == 1);
  CHECK(machine.slept == Duration::zero());
}

}  // namespace
}  // namespace leeway::testing::rank_device
