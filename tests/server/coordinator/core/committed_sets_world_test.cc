// Workers, shards and the coordinator's book, with events in every order that a seed draws.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/philox.h"
#include "server/coordinator/core/committed_set_book.h"
#include "server/core/block_core.h"
#include "server/core/held_book.h"
#include "tests/catch.h"

namespace leeway::committed_sets_world {
namespace {

constexpr uint32_t kWorkers = 4;
constexpr uint32_t kShards = 2;
constexpr uint32_t kBlocks = 2;
constexpr uint32_t kBackup = 1;
constexpr uint64_t kClocks = 8;

// Each worker sends a clock's contributions block by block, in an order of its own. Messages
// between the shards and the book may take any time. The world records what is applied in each
// block.
class World {
 public:
  // `machines`: now and then a machine is lost with the shard that it owned, and once with a
  // worker, too.
  explicit World(uint64_t seed, bool machines = false)
      : random_(seed, RandomPurpose::kEmulate, {98}), machines_(machines) {
    for (uint32_t s = 0; s < kShards; ++s) {
      Shard& shard = shards_.emplace(s, Shard{NewBook(), {}, {}}).first->second;
      for (uint32_t b = 0; b < kBlocks; ++b) {
        shard.blocks.push_back({BlockCore(s, kRules), {}, {}, {}});
        shard.blocks[b].core.OnInitialized({});
      }
    }
    sets_.Restart(0, {0, 1});
  }

  // Returns false if the job goes back, because a set names a contribution that is lost for good.
  bool Run() {
    for (int step = 0; step < 20000 && !AllDone(); ++step) {
      if (machines_ && Any(400) == 0) LoseMachine(Any(kShards));
      if (went_back_) return false;
      const uint64_t dice = random_.Below(8);
      if (dice < 4) {
        Work(Any(kWorkers));
      } else if (dice < 6) {
        Talk(Any(kShards));
      } else {
        Finish(shards_.at(Any(kShards)).blocks[Any(kBlocks)]);
      }
    }
    REQUIRE(AllDone());
    Check();
    return true;
  }

  uint64_t dropped() const { return dropped_; }

 private:
  struct Block {
    BlockCore core;
    std::map<RequestId, std::pair<uint32_t, uint64_t>> names;
    RequestIds running;
    // By clock: the ranks whose contributions were applied.
    std::vector<std::vector<uint32_t>> applied;
  };
  struct Shard {
    HeldBook held;
    std::vector<Block> blocks;
    // Committed sets that are on their way to the shard.
    std::vector<CommitSet> coming;
  };
  struct Worker {
    uint64_t clock = 0;
    std::set<uint32_t> sent;
  };

  static constexpr ConsistencyRules kRules{Consistency::kSync, 0, kWorkers, false, 0, true};
  static HeldBook NewBook() {
    return HeldBook({.workers = kWorkers, .backup = kBackup, .blocks = kBlocks});
  }

  // The shard continues at its replica, which has the applied contributions and none of the held
  // ones.
  void LoseMachine(uint32_t s) {
    if (!dead_ && Any(2) == 0) dead_ = Any(kWorkers);
    Shard heir{NewBook(), {}, {}};
    for (Block& block : shards_.at(s).blocks) {
      heir.blocks.push_back({BlockCore(s, kRules), {}, {}, std::move(block.applied)});
      heir.blocks.back().core.OnInitialized(block.core.progress(), true);
      heir.held.OnLoaded(block.core.progress().version);
    }
    shards_.erase(s);
    shards_.emplace(s, std::move(heir));
    sets_.Forget(s);
    for (Worker& worker : workers_) {
      for (uint32_t b = 0; b < kBlocks; ++b) worker.sent.erase(s * kBlocks + b);
    }
    const auto& set = sets_.latest();
    const bool named =
        set && dead_ && std::find(set->ranks.begin(), set->ranks.end(), *dead_) != set->ranks.end();
    // Decides like CoordinatorCore::LostContribution.
    went_back_ |= named && LeastVersion() <= set->clock;
  }

  uint32_t Any(uint32_t n) { return static_cast<uint32_t>(random_.Below(n)); }
  Block& BlockAt(uint32_t i) { return shards_.at(i / kBlocks).blocks[i % kBlocks]; }
  bool AllDone() {
    bool done = true;
    for (uint32_t i = 0; i < kShards * kBlocks; ++i) {
      done &= BlockAt(i).core.progress().version == kClocks;
    }
    return done;
  }

  // The worker sends one block of its clock; the last worker is slow. When all blocks are sent and
  // the next version is everywhere, it begins the next clock.
  void Work(uint32_t rank) {
    if (rank == dead_ || (rank == kWorkers - 1 && Any(4) != 0)) return;
    Worker& worker = workers_[rank];
    // The worker first reads the clock's weights.
    if (worker.clock >= kClocks || LeastVersion() < worker.clock) return;
    const uint32_t i = Any(kShards * kBlocks);
    Block& block = BlockAt(i);
    const RequestId request = ++requests_;
    const Decisions decisions =
        block.core.OnContribution({rank, 1, worker.clock}, request, true, 0);
    block.names[request] = {rank, worker.clock};
    if (decisions.accepted) shards_.at(i / kBlocks).held.OnAccepted(rank, worker.clock);
    const uint64_t clock = worker.clock;
    Act(block, decisions);
    if (worker.clock != clock) return;
    worker.sent.insert(i);
    const bool whole = worker.sent.size() == kShards * kBlocks;
    if (whole && LeastVersion() > worker.clock) worker = {worker.clock + 1, {}};
  }

  uint64_t LeastVersion() {
    uint64_t least = kClocks;
    for (uint32_t i = 0; i < kShards * kBlocks; ++i) {
      least = std::min(least, BlockAt(i).core.progress().version);
    }
    return least;
  }

  void Act(Block& block, const Decisions& decisions) {
    if (decisions.update) block.running = decisions.update->contributions;
    for (const Refusal& refusal : decisions.refusals) {
      INFO(refusal.status.ToString());
      REQUIRE(absl::IsAlreadyExists(refusal.status));
      const auto [rank, clock] = block.names.at(refusal.request);
      if (workers_[rank].clock == clock) Rejoin(rank);
    }
  }

  void Rejoin(uint32_t rank) {
    ++dropped_;
    uint64_t clock = kClocks;
    for (uint32_t i = 0; i < kShards * kBlocks; ++i) {
      clock = std::min(clock, BlockAt(i).core.OnAttach(rank, 1).value());
    }
    workers_[rank] = {clock, {}};
  }

  // Delivers a message to the book, or one from it.
  void Talk(uint32_t s) {
    Shard& shard = shards_.at(s);
    if (!shard.coming.empty()) {
      const CommitSet set = shard.coming.front();
      shard.coming.erase(shard.coming.begin());
      shard.held.OnCommitted(set.clock);
      for (Block& block : shard.blocks) Act(block, block.core.OnCommitted(set.clock, set.ranks));
      return;
    }
    if (machines_ && Any(4) == 0) shard.held.TellAgain();
    if (const auto held = shard.held.Take()) {
      const auto& latest = sets_.latest();
      if (held->again && latest && latest->clock == held->clock) shard.coming.push_back(*latest);
      sets_.OnHeld(s, held->clock, held->ranks);
      if (const auto set = sets_.Take(std::vector<bool>(kWorkers, true), kBackup)) {
        for (auto& [number, each] : shards_) each.coming.push_back(*set);
      }
    }
  }

  void Finish(Block& block) {
    if (block.running.empty()) return;
    std::vector<uint32_t> ranks;
    for (const RequestId request : block.running) {
      CHECK(block.names.at(request).second == block.applied.size());
      ranks.push_back(block.names.at(request).first);
    }
    block.applied.push_back(ranks);
    block.running.clear();
    Act(block, block.core.OnApplied());
  }

  void Check() {
    for (uint32_t i = 0; i < kShards * kBlocks; ++i) {
      CHECK(BlockAt(i).applied == BlockAt(0).applied);
    }
    for (const std::vector<uint32_t>& ranks : BlockAt(0).applied) {
      CHECK(ranks.size() >= kWorkers - kBackup);
      CHECK(std::is_sorted(ranks.begin(), ranks.end()));
      CHECK(std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end());
    }
  }

  RandomStream random_;
  const bool machines_;
  std::optional<uint32_t> dead_;
  bool went_back_ = false;
  CommittedSetBook sets_;
  std::map<uint32_t, Shard> shards_;
  std::vector<Worker> workers_{kWorkers};
  RequestId requests_ = 0;
  uint64_t dropped_ = 0;
};

TEST_CASE(
    "committed sets: in any order every block is made of the same sets, and late ones of none") {
  uint64_t dropped = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    INFO(seed);
    World world(seed);
    world.Run();
    dropped += world.dropped();
  }
  CHECK(dropped > 100);
}

TEST_CASE("committed sets: shards that change hands get what counts again, or the job goes back") {
  uint64_t whole = 0, back = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    INFO(seed);
    (World(seed, true).Run() ? whole : back)++;
  }
  CHECK(whole > 500);
  CHECK(back > 10);
}

}  // namespace
}  // namespace leeway::committed_sets_world
