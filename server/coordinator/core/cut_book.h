// Collects the parts of cuts until each is whole: a manifest is written for a cut only when every
// shard's part, and the state of every worker that keeps some, is durable.
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

// A worker's state as of `clock` (0 of one from before the job went back: whatever comes is newer),
// in the folder of the cut at `folder` (the same, until it is adopted).
struct StateFile {
  uint64_t clock = 0;
  uint64_t folder = 0;
  v1::SavedShard file;
};

// What a cut needs of a rank.
enum class StateNeed {
  // Its state at the cut's clock.
  kAtCut,
  // It has left: its newest state, which must be of the clock at which it left.
  kAtLeaving,
  // It failed or vanished: its newest state if it ever handed one in.
  kIfAny,
};

struct CutParts {
  uint64_t clock = 0;
  // By number.
  std::vector<v1::SavedShard> shards;
  // By rank.
  std::map<uint32_t, StateFile> states;
};

// Pure; not thread-safe.
class CutBook {
 public:
  // What the cut at `clock` needs of a rank, and if kAtLeaving the clock at which it left.
  using Needs = std::function<std::pair<StateNeed, uint64_t>(uint64_t clock, uint32_t rank)>;

  // `resumed`: the complete checkpoint that the job goes on from; null: from its beginning.
  CutBook(uint32_t shards, uint32_t ranks, const v1::CheckpointManifest* resumed);

  // What a cut is made of: the parts of shards 0 up to this one, which have blocks, and, where
  // workers keep state, that of every rank. Of all shards and states until this is said.
  void Expect(uint32_t shards, bool states) {
    shards_ = shards;
    states_ = states;
  }

  // Parts of cuts that are complete, in writing, failed or dropped are ignored. RESOURCE_EXHAUSTED
  // when too many cuts are open; FAILED_PRECONDITION for a shard's second, different part: the cut
  // fails.
  absl::Status AddShard(uint64_t clock, uint32_t shard, const v1::SavedShard& file, Time now);
  absl::Status AddState(uint64_t clock, uint32_t rank, const v1::SavedShard& file);
  // The cut never completes.
  void Fail(uint64_t clock, const std::string& error);
  // Begins the job's last cut. What a periodic one at that clock has of shards is forgotten: every
  // shard is written anew. Nothing to do if it is complete or in writing.
  void BeginLast(uint64_t clock, Time now);

  // A cut that has become whole, newest first; its manifest is in writing from now on. Nothing if
  // there is none, or one is in writing already: once that is durable older folders go, of which
  // the next one might want a state.
  std::optional<CutParts> TakeWhole(const Needs& needs);
  // The manifest is durable (older open cuts are dropped), or not (the cut has failed, for this).
  void Written(uint64_t clock, const absl::Status& status);
  // The job goes back to the newest complete cut: only what that consists of is known from now on.
  // Not while a manifest is in writing.
  void GoBack();

  // Cuts that have had some part for longer than `limit` fail: their clocks.
  std::vector<uint64_t> Expire(Time now, Duration limit);

  // The largest clock of any cut so far, complete or not.
  std::optional<uint64_t> latest() const;
  // Clock of the newest complete cut.
  std::optional<uint64_t> newest() const { return newest_; }
  bool Failed(uint64_t clock) const;
  // Why it failed; empty if it did not.
  std::string ErrorOf(uint64_t clock) const;
  bool Writing(uint64_t clock) const;
  bool WritingAny() const;
  // Those where the newest state of some rank lies, or one that a manifest in writing names.
  std::set<uint64_t> StateFolders() const;
  bool HasAllShards(uint64_t clock) const;
  // The rank has handed in a state of this clock or a later one, or such a cut is complete.
  bool HasState(uint32_t rank, uint64_t clock) const;
  // Shards and ranks whose part or state is not there; nothing if the cut is whole.
  struct Missing {
    std::vector<uint32_t> shards;
    std::vector<uint32_t> ranks;
  };
  Missing MissingOf(uint64_t clock, const Needs& needs) const;

 private:
  struct Cut {
    std::map<uint32_t, v1::SavedShard> shards;
    std::map<uint32_t, v1::SavedShard> states;
    // When its first shard came.
    std::optional<Time> since;
    // By rank: what its manifest names, once in writing.
    std::map<uint32_t, StateFile> named;
    bool writing = false;
    std::string error;
  };

  // The cut at `clock`, opened if it was not.
  absl::StatusOr<Cut*> Open(uint64_t clock);
  bool Settled(uint64_t clock) const;
  // The rank's part of the cut; nullopt: missing. An empty file name: none is needed.
  std::optional<StateFile> StateOf(uint64_t clock, const Cut& cut, uint32_t rank,
                                   const Needs& needs) const;
  std::optional<CutParts> Whole(uint64_t clock, const Cut& cut, const Needs& needs) const;

  uint32_t shards_;
  const uint32_t ranks_;
  bool states_ = true;
  std::optional<uint64_t> newest_;
  std::map<uint64_t, Cut> cuts_;
  // By rank; where it lies after adoption.
  std::map<uint32_t, StateFile> newest_states_;
  // The same, of the newest complete cut.
  std::map<uint32_t, StateFile> complete_states_;
};

}  // namespace leeway
