#include "server/node/cut_writer.h"

#include <map>

#include "common/files/files.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/shard_file.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::cut_writer {
namespace {

constexpr uint64_t kTotal = 64;

// Two blocks of 32 values, all on one server.
class Rig {
 public:
  Rig()
      : layout(*BlockLayout::FromWire(kTotal, 1, 32)),
        pool(FloatPool::Make(32)),
        writer({.job_id = 7,
                .server = 0,
                .layout = layout,
                .slot_names = {"momentum"},
                .run_dir = folder.path()},
               [this](uint64_t cut, const absl::StatusOr<v1::SavedShard>& saved) {
                 MutexLock lock(mutex);
                 reports.emplace(cut, saved.status());
                 changed.NotifyAll();
                 while (held_up) changed.Wait(mutex);
               }) {}

  HeldBlock Block(uint32_t block, float value) {
    HeldBlock held{block, {Filled(value), {Filled(value + 1)}, {}}, {3, {3, 4}}};
    return held;
  }
  absl::Status Report(uint64_t cut) {
    MutexLock lock(mutex);
    while (!reports.contains(cut)) changed.Wait(mutex);
    return reports.at(cut);
  }
  std::string Path(uint64_t cut) {
    return CheckpointFolder(folder.path(), cut) + "/shard-0-of-1.lwck";
  }

  TempFolder folder;
  BlockLayout layout;
  std::shared_ptr<FloatPool> pool;
  Mutex mutex;
  CondVar changed;
  std::map<uint64_t, absl::Status> reports;
  // Keeps the writer's thread in its report, as a slow disk would.
  bool held_up = false;
  CutWriter writer;

 private:
  SharedFloats Filled(float value) {
    SharedFloats floats = pool->Take();
    std::fill_n(floats.mutable_data(), 32, value);
    return floats;
  }
};

TEST_CASE("a cut is written when its last block is there, whatever the order") {
  Rig rig;
  rig.writer.OnHeld(10, rig.Block(1, 5));
  rig.writer.OnHeld(20, rig.Block(1, 8));
  rig.writer.OnHeld(10, rig.Block(0, 4));
  REQUIRE(rig.Report(10).ok());
  auto file = ShardFile::Open(rig.Path(10));
  REQUIRE(file.ok());
  REQUIRE(file->header().blocks_size() == 2);
  CHECK(file->header().blocks(0).offset() == 0);
  std::vector<float> values(32);
  REQUIRE(file->ReadValues(file->header().blocks(1), "weights", values).ok());
  CHECK(values[31] == 5);
  REQUIRE(file->ReadValues(file->header().blocks(0), "momentum", values).ok());
  CHECK(values[0] == 5);
  CHECK(file->header().blocks(0).clocks(1) == 4);
}

TEST_CASE("the last cut replaces a periodic one at the same clock") {
  Rig rig;
  rig.writer.OnHeld(10, rig.Block(0, 1));
  rig.writer.OnHeld(10, rig.Block(1, 1));
  std::vector<HeldBlock> last;
  last.push_back(rig.Block(1, 2));
  last.push_back(rig.Block(0, 2));
  REQUIRE(rig.writer.WriteLast(10, std::move(last)).ok());
  REQUIRE(rig.Report(10).ok());
  auto file = ShardFile::Open(rig.Path(10));
  std::vector<float> values(32);
  REQUIRE(file->ReadValues(file->header().blocks(0), "weights", values).ok());
  CHECK(values[0] == 2);
}

TEST_CASE("a cut that cannot be written is reported, and the next one is tried") {
  Rig rig;
  REQUIRE(WriteFileAtomically(rig.folder / "checkpoints", "in the way").ok());
  rig.writer.OnHeld(10, rig.Block(0, 1));
  rig.writer.OnHeld(10, rig.Block(1, 1));
  CHECK_FALSE(rig.Report(10).ok());
  REQUIRE(RemoveTree(rig.folder / "checkpoints").ok());
  rig.writer.OnHeld(20, rig.Block(0, 1));
  rig.writer.OnHeld(20, rig.Block(1, 1));
  CHECK(rig.Report(20).ok());
}

TEST_CASE("cuts that come faster than they can be written are dropped, all but the newest") {
  Rig rig;
  rig.held_up = true;
  auto hold = [&](uint64_t cut) {
    for (uint32_t block : {0u, 1u}) rig.writer.OnHeld(cut, rig.Block(block, 1));
  };
  hold(10);
  CHECK(rig.Report(10).ok());
  for (uint64_t cut : {20, 30, 40}) hold(cut);
  {
    MutexLock lock(rig.mutex);
    rig.held_up = false;
  }
  rig.changed.NotifyAll();
  CHECK(absl::IsResourceExhausted(rig.Report(20)));
  CHECK(absl::IsResourceExhausted(rig.Report(30)));
  CHECK(rig.Report(40).ok());
}

}  // namespace
}  // namespace leeway::cut_writer
