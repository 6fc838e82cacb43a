// Which processors are near a device, found in folders like the kernel's, and the threads on them.
#include "worker/device/placement.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <sched.h>

#include "absl/strings/match.h"
#include "tests/catch.h"
#include "tests/skip.h"
#include "tests/temp_folder.h"

namespace leeway::placement {
namespace {

// A machine with one device.
class FakeRoot {
 public:
  FakeRoot(const std::string& cpus, const std::string& node) {
    const std::string device = folder_ / "sys/bus/pci/devices/0000:6a:00.0";
    std::filesystem::create_directories(device);
    std::ofstream(device + "/local_cpulist") << cpus << "\n";
    std::ofstream(device + "/numa_node") << node << "\n";
  }
  const std::string& path() const { return folder_.path(); }

 private:
  TempFolder folder_;
};

constexpr char kDevice[] = "0000:6A:00.0";

Processors AllowedHere() {
  cpu_set_t set;
  REQUIRE(sched_getaffinity(0, sizeof(set), &set) == 0);
  Processors allowed;
  for (uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) allowed.insert(cpu);
  }
  return allowed;
}

// Restores the processors of the test's thread.
class AsBefore {
 public:
  AsBefore() { sched_getaffinity(0, sizeof(set_), &set_); }
  ~AsBefore() { sched_setaffinity(0, sizeof(set_), &set_); }

 private:
  cpu_set_t set_;
};

TEST_CASE("a list of processors is read and written as the kernel does") {
  CHECK(*ParseProcessors("0") == Processors{0});
  CHECK(*ParseProcessors("0-3,8,10-11") == Processors{0, 1, 2, 3, 8, 10, 11});
  CHECK(ProcessorsText({0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11");
  CHECK(ProcessorsText({}).empty());
  for (const char* text :
       {"", "x", "1-", "-1", "3-1", "1,,2", "1-2-3", "0-4294967295", "70000", "1 2", "0x1"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseProcessors(text).has_value());
  }
}

TEST_CASE("a device's place is the kernel's, whose letters are small") {
  const FakeRoot root("16-31,48-63", "1");
  const DevicePlace place = PlaceOf(kDevice, root.path());
  CHECK(ProcessorsText(place.processors) == "16-31,48-63");
  CHECK(place.numa_node == 1);
}

TEST_CASE("of a device that the kernel does not have, or has nothing to say of, nothing is known") {
  const FakeRoot root("", "-1");
  for (const char* device : {kDevice, "0000:6b:00.0", "", "..", "../../devices/0000:6a:00.0"}) {
    CAPTURE(device);
    CHECK(PlaceOf(device, root.path()).processors.empty());
    CHECK(PlaceOf(device, root.path()).numa_node == -1);
  }
}

TEST_CASE("threads move to what is near and allowed, and stay where that is nothing or all") {
  CHECK(Nearer({0, 1, 2, 3}, {2, 3, 4}) == Processors{2, 3});
  CHECK(Nearer({0, 1}, {2, 3}).empty());
  CHECK(Nearer({0, 1, 2, 3}, {2, 3}).empty());
  CHECK(Nearer({}, {2, 3}).empty());
  CHECK(Nearer({1}, {}).empty());
}

TEST_CASE("this process moves to the one processor that is near, and says so") {
  const Processors before = AllowedHere();
  if (before.size() < 2) SKIP("one processor");
  const AsBefore restored;
  const uint32_t near = *before.rbegin();
  const FakeRoot root(std::to_string(near), "0");
  const std::string note = PinNear(kDevice, root.path());
  CHECK(AllowedHere() == Processors{near});
  CHECK(absl::StrContains(note, "near the GPU (PCI 0000:6A:00.0, NUMA node 0): "));
  CHECK(absl::StrContains(note, " moved to the processors"));
}

TEST_CASE("threads stay where they are if nothing is known, nothing is better, or it is off") {
  const Processors before = AllowedHere();
  const AsBefore restored;
  const FakeRoot unknown("", "-1"), all("0-1023", "0"), elsewhere("60000", "0");
  CHECK(absl::StrContains(PinNear(kDevice, unknown.path()), "are not known"));
  CHECK(absl::StrContains(PinNear(kDevice, all.path()), "near the GPU"));
  CHECK(absl::StrContains(PinNear(kDevice, elsewhere.path()), "are 60000"));
  const FakeRoot one(std::to_string(*before.begin()), "0");
  REQUIRE(setenv("LEEWAY_CUDA_PIN", "0", 1) == 0);
  CHECK(absl::StrContains(PinNear(kDevice, one.path()), "LEEWAY_CUDA_PIN is 0"));
  REQUIRE(unsetenv("LEEWAY_CUDA_PIN") == 0);
  CHECK(AllowedHere() == before);
}

TEST_CASE("workers that just fit have processors of their own, others none") {
  const auto places = [](uint32_t workers, uint32_t threads, const Processors& allowed) {
    return PlaceWorkers(workers, threads, allowed);
  };
  CHECK(places(2, 1, {0, 1}) == std::vector<Processors>{{0}, {1}});
  CHECK(places(2, 2, {1, 2, 5, 7, 9}) == std::vector<Processors>{{1, 2}, {5, 7}});
  CHECK(places(1, 1, {0, 1}).empty());
  CHECK(places(3, 1, {0, 1}).empty());
  CHECK(places(2, 1, {0, 1, 2, 3}).empty());
  CHECK(places(3, 1, {0, 1, 2, 3}).size() == 3);
  CHECK(places(2, 1, {}).empty());
}

TEST_CASE("a thread is kept to its processors until it lets go, and so are those it starts") {
  const Processors allowed = AllowedProcessors();
  REQUIRE_FALSE(allowed.empty());
  const Processors one = {*allowed.rbegin()};
  Processors kept, started, let_go;
  std::thread([&] {
    REQUIRE(KeepTo(one));
    kept = AllowedProcessors();
    std::thread([&] {
      started = AllowedProcessors();
      LetGo();
      let_go = AllowedProcessors();
    }).join();
  }).join();
  CHECK(kept == one);
  CHECK(started == one);
  CHECK(let_go == allowed);
}

}  // namespace
}  // namespace leeway::placement
