// Collects the parts of cuts until each is complete. A manifest is written for a cut only when
// every shard's part and the state of every worker that keeps state are durable.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// A worker's state at `clock`, in the folder of the cut at clock `folder`. The two clocks are the
// same until the state is copied for a later cut. If the job has gone back since the state was
// saved, `clock` is 0, so that any new state is newer.
struct StateFile {
  uint64_t clock = 0;
  uint64_t folder = 0;
  v1::SavedShard file;
};

// Which state of a rank a cut needs.
enum class StateNeed {
  // The rank's state at the cut's clock.
  kAtCut,
  // The rank has left. The cut needs its newest state, which must be from the clock at which it
  // left.
  kAtLeaving,
  // The rank failed or vanished. The cut takes the newest state that the rank has handed in, if
  // there is one.
  kIfAny,
};

struct CutParts {
  uint64_t clock = 0;
  // The shards' parts, by shard number.
  std::vector<v1::SavedShard> shards;
  // The workers' states, by rank.
  std::map<uint32_t, StateFile> states;
};

// Pure; not thread-safe.
class CutBook {
 public:
  // Returns what the cut at `clock` needs of a rank and, for kAtLeaving, the clock at which the
  // rank left.
  using Needs = std::function<std::pair<StateNeed, uint64_t>(uint64_t clock, uint32_t rank)>;

  // `resumed` is the complete checkpoint from which the job continues; null if the job starts from
  // its beginning.
  CutBook(uint32_t shards, uint32_t ranks, const v1::CheckpointManifest* resumed);

  // Sets what a cut consists of: the parts of shards 0 to `shards` - 1, which have blocks, and, if
  // `states` is true, the state of every rank. Before this call a cut needs the parts of all shards
  // and the states of all ranks.
  void Expect(uint32_t shards, bool states) {
    shards_ = shards;
    states_ = states;
  }

  // Adds a part. Parts of cuts that are complete, being written, failed or dropped are ignored.
  // Returns RESOURCE_EXHAUSTED if too many cuts are open. If the shard has already handed in a
  // different part, the cut fails, and the function returns FAILED_PRECONDITION.
  absl::Status AddShard(uint64_t clock, uint32_t shard, const v1::SavedShard& file, Time now);
  absl::Status AddState(uint64_t clock, uint32_t rank, const v1::SavedShard& file);
  // Marks the cut as failed: it never completes.
  void Fail(uint64_t clock, const std::string& error);
  // Begins the job's last cut. If there is a periodic cut at that clock, forgets the shards' parts
  // of it, because every shard is written again. Does nothing if the cut is complete or being
  // written.
  void BeginLast(uint64_t clock, Time now);

  // Returns the newest cut that has become complete. From now on its manifest counts as being
  // written. Returns nullopt if no cut has become complete. Also returns nullopt while another
  // manifest is being written: when that manifest is durable, older folders are removed, and this
  // cut might need a state in one of them.
  std::optional<CutParts> TakeWhole(const Needs& needs);
  // Takes the result of writing the manifest. If `status` is OK, the manifest is durable, and older
  // open cuts are dropped. Otherwise the cut has failed.
  void Written(uint64_t clock, const absl::Status& status);
  // Forgets everything but the parts of the newest complete cut, because the job goes back to it.
  // Must not be called while a manifest is being written.
  void GoBack();

  // Marks cuts as failed if their first part came longer than `limit` ago, and returns their
  // clocks.
  std::vector<uint64_t> Expire(Time now, Duration limit);

  // Returns the highest clock of any cut so far, complete or not.
  std::optional<uint64_t> latest() const;
  // Returns the clock of the newest complete cut.
  std::optional<uint64_t> newest() const { return newest_; }
  bool Failed(uint64_t clock) const;
  // Returns the reason why the cut failed; empty if it did not fail.
  std::string ErrorOf(uint64_t clock) const;
  bool Writing(uint64_t clock) const;
  bool WritingAny() const;
  // Returns the clocks of folders that hold the newest state of a rank, or a state named by a
  // manifest that is being written.
  std::set<uint64_t> StateFolders() const;
  bool HasAllShards(uint64_t clock) const;
  // Returns true if the rank has handed in a state of `clock` or later, or if a cut at `clock` or
  // later is complete.
  bool HasState(uint32_t rank, uint64_t clock) const;
  // The shards whose parts are missing, and the ranks whose states are missing. Both are empty if
  // the cut is complete.
  struct Missing {
    std::vector<uint32_t> shards;
    std::vector<uint32_t> ranks;
  };
  Missing MissingOf(uint64_t clock, const Needs& needs) const;

 private:
  struct Cut {
    std::map<uint32_t, v1::SavedShard> shards;
    std::map<uint32_t, v1::SavedShard> states;
    // When the first part of the cut came from a shard.
    std::optional<Time> since;
    // The state of each rank that the manifest names, once the manifest is being written.
    std::map<uint32_t, StateFile> named;
    bool writing = false;
    std::string error;
  };

  // Returns the cut at `clock`, and opens it if necessary.
  absl::StatusOr<Cut*> Open(uint64_t clock);
  bool Settled(uint64_t clock) const;
  // Returns the rank's state in the cut; nullopt if the state is missing. An empty file name means
  // that the cut needs no state of this rank.
  std::optional<StateFile> StateOf(uint64_t clock, const Cut& cut, uint32_t rank,
                                   const Needs& needs) const;
  std::optional<CutParts> Whole(uint64_t clock, const Cut& cut, const Needs& needs) const;

  uint32_t shards_;
  const uint32_t ranks_;
  bool states_ = true;
  std::optional<uint64_t> newest_;
  std::map<uint64_t, Cut> cuts_;
  // The newest state of each rank. A state that was copied for a later cut is in its new folder.
  std::map<uint32_t, StateFile> newest_states_;
  // The state of each rank in the newest complete cut.
  std::map<uint32_t, StateFile> complete_states_;
};

}  // namespace leeway
