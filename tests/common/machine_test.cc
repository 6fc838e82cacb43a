#include "common/machine.h"

#include <algorithm>
#include <thread>

#include <sched.h>

#include "common/control_groups.h"
#include "common/files/files.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::machine {
namespace {

constexpr uint64_t kMebi = 1 << 20;

// A machine on which this process is in the control group /box/job of version 2.
class FakeRoot {
 public:
  explicit FakeRoot(const std::string& group = "0::/box/job\n") {
    REQUIRE(MakeFolders(folder_ / "proc/self").ok());
    REQUIRE(MakeFolders(folder_ / "sys/fs/cgroup/box/job").ok());
    Write("proc/self/cgroup", "7:devices:/elsewhere\n" + group);
  }
  const std::string& path() const { return folder_.path(); }
  void Make(const std::string& folder) { REQUIRE(MakeFolders(folder_ / folder).ok()); }
  void Write(const std::string& file, const std::string& text) {
    REQUIRE(WriteFileAtomically(folder_ / file, text).ok());
  }

 private:
  TempFolder folder_;
};

TEST_CASE("memory is what the tightest group leaves") {
  FakeRoot root;
  const uint64_t all = MachineMemoryBytes(root.path());
  CHECK(all > 64 * kMebi);
  root.Write("sys/fs/cgroup/box/job/memory.max", "max\n");
  CHECK(MachineMemoryBytes(root.path()) == all);
  root.Write("sys/fs/cgroup/box/memory.max", std::to_string(64 * kMebi) + "\n");
  CHECK(MachineMemoryBytes(root.path()) == 64 * kMebi);
  root.Write("sys/fs/cgroup/box/job/memory.max", std::to_string(32 * kMebi) + "\n");
  CHECK(MachineMemoryBytes(root.path()) == 32 * kMebi);
  // The limit is larger than the memory of the machine.
  root.Write("sys/fs/cgroup/box/job/memory.max", std::to_string(2 * all) + "\n");
  CHECK(MachineMemoryBytes(root.path()) == 64 * kMebi);
}

TEST_CASE("a part of a processor counts as one, and there are no more than there are") {
  FakeRoot root;
  const uint32_t all = MachineProcessors(root.path());
  CHECK(all >= 1);
  CHECK(all <= std::max(std::thread::hardware_concurrency(), 1u));
  root.Write("sys/fs/cgroup/box/job/cpu.max", "max 100000\n");
  CHECK(MachineProcessors(root.path()) == all);
  root.Write("sys/fs/cgroup/box/cpu.max", "150000 100000\n");
  CHECK(MachineProcessors(root.path()) == std::min(all, 2u));
  root.Write("sys/fs/cgroup/box/job/cpu.max", "50000 100000\n");
  CHECK(MachineProcessors(root.path()) == 1);
}

TEST_CASE("groups of version 1 bound, too") {
  FakeRoot root("5:cpu,cpuacct:/box/job\n4:memory:/box\n3:pids:/box/job\n0::/\n");
  CHECK_FALSE(ProcessLimitOfGroups(root.path()).has_value());
  for (const char* folder : {"cpu/box/job", "memory/box", "pids/box/job"}) {
    root.Make("sys/fs/cgroup/" + std::string(folder));
  }
  root.Write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", std::to_string(64 * kMebi) + "\n");
  CHECK(MachineMemoryBytes(root.path()) == 64 * kMebi);
  const uint32_t all = MachineProcessors(root.path());
  root.Write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
  root.Write("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
  CHECK(MachineProcessors(root.path()) == all);
  root.Write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "50000\n");
  CHECK(MachineProcessors(root.path()) == 1);
  root.Write("sys/fs/cgroup/pids/box/pids.max", "20\n");
  root.Write("sys/fs/cgroup/pids/box/job/pids.max", "max\n");
  const auto limit = ProcessLimitOfGroups(root.path());
  REQUIRE(limit.has_value());
  CHECK(limit->processes == 20);
  CHECK(limit->file == root.path() + "/sys/fs/cgroup/pids/box/pids.max");
}

TEST_CASE("processors are those that the affinity permits") {
  cpu_set_t permitted;
  REQUIRE(sched_getaffinity(0, sizeof(permitted), &permitted) == 0);
  int first = 0;
  while (!CPU_ISSET(first, &permitted)) ++first;
  uint32_t processors = 0;
  std::thread bound([first, &processors] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    if (sched_setaffinity(0, sizeof(one), &one) == 0) processors = MachineProcessors();
  });
  bound.join();
  CHECK(processors == 1);
}

TEST_CASE("a container that sees its own group at the top is bounded by it") {
  for (const char* group : {"0::/\n", "0::/not/seen/here\n"}) {
    FakeRoot root(group);
    root.Write("sys/fs/cgroup/memory.max", std::to_string(16 * kMebi) + "\n");
    CHECK(MachineMemoryBytes(root.path()) == 16 * kMebi);
  }
  FakeRoot none("");
  none.Write("sys/fs/cgroup/memory.max", std::to_string(16 * kMebi) + "\n");
  CHECK(MachineMemoryBytes(none.path()) > 64 * kMebi);
}

}  // namespace
}  // namespace leeway::machine
