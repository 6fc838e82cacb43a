#include "tests/sim/shape.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "common/philox.h"

namespace leeway::sim {
namespace {

constexpr Wanted kWhole = {.whole = true};
constexpr Wanted kReplicas = {.whole = true, .replicas = true};
constexpr Wanted kResizes = {.whole = true, .resizes = true};
constexpr Wanted kSets = {.whole = true, .sets = true};
constexpr Wanted kSetsWithReplicas = {.whole = true, .replicas = true, .sets = true};

constexpr std::array<BugInfo, kBugs> kInfos = {{
    {"none", "nothing is broken"},
    {"apply_twice", "an update is run twice"},
    {"ignore_duplicates", "what the core calls a duplicate is applied all the same"},
    {"lose_accepted", "an acknowledged contribution never reaches the values"},
    {"no_fence", "older incarnations are passed off as the newest"},
    {"wrong_version", "a reader gets the version after, or before, the one decided"},
    {"torn_read", "answers are taken after the next update has begun"},
    {"torn_cut", "one block in a cut is held after the update that follows"},
    {"late_cut", "every other cut is not taken"},
    {"lax_staleness", "readers are let go one clock too early"},
    {"forget_lost", "servers are not told that a rank is lost"},
    {"forget_return", "servers are not told that a lost rank is back"},
    {"no_tick", "those who wait are never told so"},
    {"lose_waiter", "now and then an answer is not sent"},
    {"never_expire", "leases never end"},
    {"arrival_order", "a sync set is combined in the order of arrival"},
    {"other_set", "one server commits a sync clock without the last rank"},
    {"same_incarnation", "a new life gets the incarnation of the old one"},
    {"fall_back", "a version is thrown away in silence"},
    {"silent_refusal", "waits are refused without naming who is missing"},
    {"push_held", "a push is answered when it is accepted, before it is applied", kReplicas},
    {"old_generation", "servers hear those who have not gone back with the job", kWhole},
    {"half_way", "one server goes back to an older checkpoint than the others", kWhole},
    {"forget_record", "a coordinator started again forgets which generation it was", kWhole},
    {"forget_begun", "a coordinator started again forgets that the job had begun", kWhole},
    {"end_forgotten", "workers hear of the job's end, the record does not", kWhole},
    {"no_last_state", "who begins where all stop leaves without handing in a state", kWhole},
    {"silence_believed", "a server that is silent for a lease is taken for replaced", kWhole},
    {"lease_taken_back", "one more lease is granted, and is over at once", kWhole},
    {"ungated", "answers leave before the replica has them", kReplicas},
    {"gate_forgotten", "after a switch of replica answers do not wait for the new one", kReplicas},
    {"unsynced_take_over", "replicas are said to be synced that are not", kReplicas},
    {"lease_ignored", "a server answers after its lease", kReplicas},
    {"record_late", "a placement is used, but not on record", kReplicas},
    {"since_epoch_ignored", "a replica takes what was sent for one before it", kReplicas},
    {"attach_ahead", "who attaches is told of what the replica does not have", kReplicas},
    {"hint_believed", "a server whose connection was cut is taken for gone unchecked", kReplicas},
    {"set_differs", "one server hears of a set without its last rank", kSets},
    {"dropped_applied", "what is not in a clock's set is applied all the same", kSets},
    {"held_unsaid", "what is held is told once, whether that arrives or not", kSets},
    {"set_changed", "a set that is told again is another one", kSetsWithReplicas},
    {"hand_over_unheard", "who hands a shard over hears of it no sooner than others", kResizes},
}};

// Half of the schedules have no fault of this kind.
uint32_t Some(RandomStream& draws, uint32_t most) {
  if (draws.NextU32() & 1) return 0;
  return 1 + static_cast<uint32_t>(draws.Below(most));
}

}  // namespace

const BugInfo& InfoOf(Bug bug) { return kInfos[static_cast<size_t>(bug)]; }

std::optional<Bug> BugNamed(const std::string& name) {
  for (size_t i = 0; i < kInfos.size(); ++i) {
    if (name == kInfos[i].name) return static_cast<Bug>(i);
  }
  return std::nullopt;
}

Shape DrawShape(uint64_t seed, const Wanted& wanted) {
  RandomStream draws(seed, RandomPurpose::kGenerate, {1});
  Shape shape;
  const auto mode = static_cast<Consistency>(draws.Below(3));
  shape.mode = wanted.mode.value_or(mode);
  shape.staleness = shape.mode == Consistency::kBounded ? draws.NextU32() % 3 : 0;
  shape.elastic = wanted.elastic.value_or(draws.NextU32() % 4 == 0);
  shape.cut_every = draws.NextU32() % 3;
  shape.workers = 2 + draws.NextU32() % 2;
  shape.servers = 2;
  shape.blocks = 2;
  shape.clocks = 3 + draws.NextU32() % 3;
  if (draws.NextU32() % 16 == 0) {
    shape.workers = 1 + draws.NextU32() % kRanksMax;
    shape.servers = 1 + draws.NextU32() % kServersMax;
    shape.blocks = shape.servers + draws.NextU32() % (kBlocksMax - shape.servers + 1);
  }
  shape.whole = wanted.whole || wanted.replicas || wanted.sets || wanted.resizes;
  if (wanted.replicas) {
    shape.replicas = 2;
    // Three servers, if the third can replace a lost one.
    const bool one = shape.servers == 1;
    const bool three = shape.servers == 2 && draws.NextU32() % 2 == 0;
    if (one) shape.servers = 2;
    if (three) shape.servers = 3;
    shape.blocks = std::max(shape.blocks, shape.servers);
  }
  if (wanted.resizes) {
    shape.resizes = true;
    shape.servers = std::max(shape.servers, 2 + draws.NextU32() % 2);
    shape.blocks = std::max(shape.blocks, shape.servers);
    shape.begins = shape.replicas + draws.NextU32() % (shape.servers - shape.replicas + 1);
  }
  if (!wanted.sets) return shape;
  shape.mode = Consistency::kSync;
  shape.staleness = 0;
  shape.workers = std::max(shape.workers, 2u);
  const uint32_t which = draws.NextU32() % 3;
  shape.continues = which > 0;
  shape.backup = which < 2 && !shape.elastic ? 1 : 0;
  shape.continues |= shape.backup == 0;
  return shape;
}

Faults DrawFaults(uint64_t seed, const Shape& shape) {
  RandomStream draws(seed, RandomPurpose::kGenerate, {2});
  Faults faults;
  faults.drop = Some(draws, 40);
  faults.duplicate = Some(draws, 60);
  faults.slow = Some(draws, 60);
  faults.crashes = Some(draws, 3);
  faults.replacements = Some(draws, 2);
  faults.leaves = draws.NextU32() % 4 == 0 && !shape.whole ? 1 : 0;
  faults.pauses = Some(draws, 3);
  faults.partitions = Some(draws, 3);
  faults.skew = draws.NextU32() & 1;
  faults.late_start = draws.NextU32() % 4 == 0;
  const bool waits = shape.sync() && !shape.continues;
  faults.gone = !waits && shape.workers > 1 && draws.NextU32() % 4 == 0;
  faults.stop = shape.whole && draws.NextU32() % 4 == 0;
  faults.split = draws.NextU32() % 4 == 0 ? 1 + draws.NextU32() % 2 : 0;
  if (draws.NextU32() % 4 == 0) faults.reject = 1 + draws.NextU32() % 40;
  if (shape.whole) {
    faults.server_kills = Some(draws, 2);
    faults.coordinator_kills = draws.NextU32() % 4 == 0 ? 1 : 0;
    if (shape.replicas > 1) {
      faults.server_kills = Some(draws, 4);
      faults.relay = shape.servers == 3 && draws.NextU32() % 8 == 0;
    }
  }
  // A worker that is gone for good cannot be asked for a rejected contribution again.
  if (faults.gone && shape.sets()) faults.reject = 0;
  faults.heal_at = 3000 + static_cast<Micros>(draws.Below(9000));
  if (faults.relay) faults.heal_at += 30'000;
  faults.belated = shape.replicas > 1 && !faults.relay && draws.NextU32() % 8 == 0;
  if (faults.belated) faults.heal_at += 40'000;
  if (shape.resizes) {
    faults.resizes = 1 + draws.NextU32() % 4;
    faults.drains = Some(draws, 3);
  }
  faults.deaf = shape.whole && draws.NextU32() % 8 == 0;
  faults.hush = shape.whole && draws.NextU32() % 8 == 0;
  if (faults.deaf || faults.hush) faults.heal_at += 30'000;
  return faults;
}

std::string Describe(const Shape& shape, const Faults& faults) {
  static constexpr const char* kModes[] = {"sync", "bounded", "async"};
  return absl::StrCat(
      kModes[static_cast<int>(shape.mode)], " s=", shape.staleness, shape.elastic ? " elastic" : "",
      shape.whole ? " whole" : "", shape.replicas > 1 ? " replicas" : "",
      shape.resizes ? absl::StrCat(" resizes, begins with ", shape.begins) : "",
      shape.sets()
          ? absl::StrCat(" sets, backup ", shape.backup, shape.continues ? " continue" : "")
          : "",
      ", ", shape.workers, " workers, ", shape.servers, " servers, ", shape.blocks, " blocks, ",
      shape.clocks, " clocks, cut every ", shape.cut_every, "; in 256: drop ", faults.drop,
      " duplicate ", faults.duplicate, " slow ", faults.slow, " reject ", faults.reject,
      "; crashes ", faults.crashes, " replacements ", faults.replacements, " leaves ",
      faults.leaves, " pauses ", faults.pauses, " partitions ", faults.partitions, " server kills ",
      faults.server_kills, " coordinator kills ", faults.coordinator_kills,
      faults.skew ? " skew" : "", faults.late_start ? " late_start" : "",
      faults.gone ? " gone" : "", faults.stop ? " stop" : "",
      faults.split > 0 ? absl::StrCat(" split every ", faults.split) : "",
      faults.deaf ? " deaf" : "", faults.hush ? " hush" : "", faults.relay ? " relay" : "",
      faults.belated ? " belated" : "",
      faults.resizes > 0 ? absl::StrCat(" resizes ", faults.resizes) : "",
      faults.drains > 0 ? absl::StrCat(" drains ", faults.drains) : "", "; heals at ",
      faults.heal_at, " us");
}

}  // namespace leeway::sim
