// What a schedule is about: the job, which faults it has, and which rule is broken on purpose.
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
  // Servers that have each block; above 1 only in the whole world.
  uint32_t replicas = 1;
  // Somebody asks for other numbers of servers; it begins with so many of `servers`. Whole world.
  bool resizes = false;
  uint32_t begins = 0;
  // The whole coordinator instead of its membership alone.
  bool whole = false;
  // Committed sets: a clock can do without so many; and without who is lost. Sync, whole world.
  uint32_t backup = 0;
  bool continues = false;

  bool sync() const { return mode == Consistency::kSync; }
  // Shards change hands while the job goes on.
  bool moves() const { return replicas > 1 || resizes; }
  bool sets() const { return backup > 0 || continues; }
  ConsistencyRules Rules() const { return {mode, staleness, workers, elastic, cut_every, sets()}; }
};

// Of a message: in 256. Of a whole schedule: how many.
struct Faults {
  uint32_t drop = 0;
  uint32_t duplicate = 0;
  uint32_t slow = 0;
  // Of an update: one of its contributions is not finite.
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
  // A worker that crashes and never comes back. Never where a clock waits for it.
  bool gone = false;
  // Somebody asks for an early end. Whole world only.
  bool stop = false;
  // Three servers with replicas, one after the other: the first stands still for longer than its
  // lease, the one that takes over is killed and comes back, and so is the third as the first
  // wakes.
  bool relay = false;
  // With replicas: what an owner sends to its replica is long on its way. Meanwhile it is killed,
  // comes back and owns its shard again; when that arrives it is killed once more.
  bool belated = false;
  // How often another number of servers is asked for.
  uint32_t resizes = 0;
  // With resizes: servers that are to leave in order, and come back.
  uint32_t drains = 0;
  // For longer than a lease, and in half of the cases than two: the coordinator hears nobody, or
  // all but it and server 0 stand still together. Whole world only.
  bool deaf = false;
  bool hush = false;
  // Push and Pull in place of PushPull at every clock that this divides; 0: never.
  uint32_t split = 0;
  // When all of it ends.
  Micros heal_at = 0;
};

// Each breaks one promise in the driver around a core, which stays as it is.
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

// What may be drawn.
struct Wanted {
  std::optional<Consistency> mode = std::nullopt;
  std::optional<bool> elastic = std::nullopt;
  bool whole = false;
  // Whole, with a replica of each block.
  bool replicas = false;
  // Whole, with committed sets.
  bool sets = false;
  // Whole, and the number of servers changes.
  bool resizes = false;
  Bug bug = Bug::kNone;
};

struct BugInfo {
  const char* name;
  const char* what;
  // Where it shows.
  Wanted where = {};
};
const BugInfo& InfoOf(Bug bug);
std::optional<Bug> BugNamed(const std::string& name);

// A pure function of both arguments.
Shape DrawShape(uint64_t seed, const Wanted& wanted);
Faults DrawFaults(uint64_t seed, const Shape& shape);
std::string Describe(const Shape& shape, const Faults& faults);

}  // namespace leeway::sim
