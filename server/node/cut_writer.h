// Writes what the blocks hold for a cut into this server's shard file, beside the training: the
// blocks hand over references at their moment, one thread writes once a cut has all of them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/shard/shard.h"

namespace leeway {

// Thread-safe.
class CutWriter : public CutListener {
 public:
  struct Options {
    uint64_t job_id = 0;
    uint32_t server = 0;
    BlockLayout layout;
    std::vector<std::string> slot_names;
    std::string run_dir;
    // Where the shard has changed hands: in which epoch it came here.
    uint64_t epoch = 0;
    uint64_t generation = 0;
    // What is saved says which contributions it has.
    bool clocks = false;
  };
  // Called from the writer's thread when the file of a cut is durable, or could not be written.
  using Report = std::function<void(uint64_t cut, const absl::StatusOr<v1::SavedShard>&)>;

  CutWriter(Options options, Report report);
  ~CutWriter() override;
  // Writes what is complete, drops the rest; nothing is written or reported afterwards.
  void Close();

  void OnHeld(uint64_t cut, HeldBlock block) override;

  // Writes blocks now, in the caller's thread, once the writer's own thread has nothing left to do:
  // a cut may come again at the clock of a periodic one.
  absl::StatusOr<v1::SavedShard> WriteLast(uint64_t cut, std::vector<HeldBlock> blocks);

 private:
  struct Cut {
    uint64_t clock = 0;
    std::vector<HeldBlock> blocks;
    // A newer one was complete before this one's turn came: its blocks are let go, so that a slow
    // disk costs checkpoints and not memory.
    bool overtaken = false;
  };
  void Loop();
  absl::StatusOr<v1::SavedShard> Write(uint64_t cut, std::vector<HeldBlock> blocks) const;

  const Options options_;
  const Report report_;
  Mutex mutex_;
  CondVar changed_;
  // By clock; not complete yet. Blocks reach a cut at different moments, and may reach the next one
  // before the others have reached this.
  std::map<uint64_t, std::vector<HeldBlock>> open_ GUARDED_BY(mutex_);
  std::deque<Cut> complete_ GUARDED_BY(mutex_);
  bool writing_ GUARDED_BY(mutex_) = false;
  bool stop_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
