// What a schedule is about: the job, its faults, and the rule that is broken on purpose.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/core/block_core.h"

namespace leeway::sim {

inline constexpr uint32_t kRanksMax = 4;
inline constexpr uint32_t kServersMax = 3;
inline constexpr uint32_t kBlocksMax = 6;

// Simulated time since the schedule began.
using Micros = int64_t;

struct Shape {
  Consistency mode = Consistency::kSync;
  uint32_t staleness = 0;
  bool elastic = false;
  uint32_t cut_every = 0;
  uint32_t workers = 2;
  uint32_t servers = 2;
  // Block b lives on server b % servers.
  uint32_t blocks = 2;
  uint32_t clocks = 3;
  // How many servers have each block. Values above 1 need the whole world.
  uint32_t replicas = 1;
  // The number of servers changes on request; the job begins with `begins` of the `servers`. Whole
  // world only.
  bool resizes = false;
  uint32_t begins = 0;
  // The whole coordinator instead of its membership alone.
  bool whole = false;
  // Committed sets: a clock can do without `backup` contributions; `continues`: and without a lost
  // worker. Sync mode, whole world.
  uint32_t backup = 0;
  bool continues = false;

  bool sync() const { return mode == Consistency::kSync; }
  // Shards change their owner while the job goes on.
  bool moves() const { return replicas > 1 || resizes; }
  bool sets() const { return backup > 0 || continues; }
  ConsistencyRules Rules() const { return {mode, staleness, workers, elastic, cut_every, sets()}; }
};

// Rates are in 256 of the messages. Counts are for the whole schedule.
struct Faults {
  uint32_t drop = 0;
  uint32_t duplicate = 0;
  uint32_t slow = 0;
  // In 256 of the updates: one of the contributions is not finite.
  uint32_t reject = 0;
  uint32_t crashes = 0;
  uint32_t replacements = 0;
  uint32_t leaves = 0;
  uint32_t pauses = 0;
  uint32_t partitions = 0;
  // Whole world only: processes that are killed and started again.
  uint32_t server_kills = 0;
  uint32_t coordinator_kills = 0;
  bool skew = false;
  bool late_start = false;
  // A worker crashes and never comes back. Never true where a clock waits for that worker.
  bool gone = false;
  // The job is asked to stop early. Whole world only.
  bool stop = false;
  // Three servers with replicas, which take over one after the other. The first stands still for
  // longer than its lease. The second, which takes over, is killed and comes back. The third is
  // killed and comes back as the first wakes.
  bool relay = false;
  // With replicas: what an owner sends to its replica is delayed for long. Meanwhile the owner is
  // killed, comes back and owns its shard again. When the delayed messages arrive, it is killed
  // once more.
  bool belated = false;
  // How often the number of servers changes.
  uint32_t resizes = 0;
  // With resizes: how many servers leave in order and come back.
  uint32_t drains = 0;
  // `deaf`: the coordinator hears nobody. `hush`: all but it and server 0 stand still together.
  // Both last longer than a lease, and in half of the cases longer than two. Whole world only.
  bool deaf = false;
  bool hush = false;
  // Every clock that this divides uses Push and Pull in place of PushPull; 0: no clock does.
  uint32_t split = 0;
  // When all faults end.
  Micros heal_at = 0;
};

// Bugs on purpose. Each breaks one promise in the driver around a core; the core itself stays as it
// is.
enum class Bug : uint8_t {
  kNone,
  kApplyTwice,
  kIgnoreDuplicates,
  kLoseAccepted,
  kNoFence,
  kWrongVersion,
  kTornRead,
  kTornCut,
  kLateCut,
  kLaxStaleness,
  kForgetLost,
  kForgetReturn,
  kNoTick,
  kLoseWaiter,
  kNeverExpire,
  kArrivalOrder,
  kOtherSet,
  kSameIncarnation,
  kFallBack,
  kSilentRefusal,
  kPushHeld,
  // Whole world only.
  kOldGeneration,
  kHalfWay,
  kForgetRecord,
  kForgetBegun,
  kEndForgotten,
  kNoLastState,
  kSilenceBelieved,
  kLeaseTakenBack,
  // With replicas only.
  kUngated,
  kGateForgotten,
  kUnsyncedTakeOver,
  kLeaseIgnored,
  kRecordLate,
  kSinceEpochIgnored,
  kAttachAhead,
  kHintBelieved,
  // With committed sets only.
  kSetDiffers,
  kDroppedApplied,
  kHeldUnsaid,
  kSetChanged,
  // With resizes only.
  kHandOverUnheard,
};
inline constexpr uint32_t kBugs = 42;

// Restricts what may be drawn.
struct Wanted {
  std::optional<Consistency> mode = std::nullopt;
  std::optional<bool> elastic = std::nullopt;
  bool whole = false;
  // The whole world, with a replica of each block.
  bool replicas = false;
  // The whole world, with committed sets.
  bool sets = false;
  // The whole world, with a changing number of servers.
  bool resizes = false;
  Bug bug = Bug::kNone;
};

struct BugInfo {
  const char* name;
  const char* what;
  // The schedules in which the bug shows.
  Wanted where = {};
};
const BugInfo& InfoOf(Bug bug);
std::optional<Bug> BugNamed(const std::string& name);

// A pure function of its two arguments.
Shape DrawShape(uint64_t seed, const Wanted& wanted);
Faults DrawFaults(uint64_t seed, const Shape& shape);
std::string Describe(const Shape& shape, const Faults& faults);

}  // namespace leeway::sim
