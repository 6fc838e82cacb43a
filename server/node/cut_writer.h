// Writes the blocks of a cut into this server's shard file while training continues. The shard
// hands over references to each block when the block reaches the cut. One thread writes a cut once
// all blocks are there.
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
    // The epoch in which the shard moved here from another server, or 0 if it has not moved.
    uint64_t epoch = 0;
    uint64_t generation = 0;
    // True if the entry of the saved file contains the clocks of the ranks.
    bool clocks = false;
  };
  // Called in the writer's thread when a cut's file is durable or could not be written.
  using Report = std::function<void(uint64_t cut, const absl::StatusOr<v1::SavedShard>&)>;

  CutWriter(Options options, Report report);
  ~CutWriter() override;
  // Writes the complete cuts and drops the incomplete ones. Nothing is written or reported
  // afterwards.
  void Close();

  void OnHeld(uint64_t cut, HeldBlock block) override;

  // Writes `blocks` in the caller's thread. First waits until the writer's own thread has finished
  // its work, because a periodic cut may have the same clock.
  absl::StatusOr<v1::SavedShard> WriteLast(uint64_t cut, std::vector<HeldBlock> blocks);

 private:
  struct Cut {
    uint64_t clock = 0;
    std::vector<HeldBlock> blocks;
    // True if a newer cut was complete before this cut could be written. The writer then drops this
    // cut and releases its blocks. So a slow disk costs checkpoints, but no memory.
    bool overtaken = false;
  };
  void Loop();
  absl::StatusOr<v1::SavedShard> Write(uint64_t cut, std::vector<HeldBlock> blocks) const;

  const Options options_;
  const Report report_;
  Mutex mutex_;
  CondVar changed_;
  // The cuts that are not complete yet, by clock. Several cuts can be open, because some blocks may
  // reach the next cut before other blocks have reached this cut.
  std::map<uint64_t, std::vector<HeldBlock>> open_ GUARDED_BY(mutex_);
  std::deque<Cut> complete_ GUARDED_BY(mutex_);
  bool writing_ GUARDED_BY(mutex_) = false;
  bool stop_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
