// Workers that attach with an incarnation that nobody was given, in seeded schedules. Processes die
// and come back, among them the coordinator and servers. What the coordinator says is late, lost or
// overtaken, and forgers claim incarnations at random. The real Membership, LifeBook and BlockCore
// decide.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/philox.h"
#include "server/coordinator/core/membership.h"
#include "server/core/block_core.h"
#include "server/core/life_book.h"
#include "tests/catch.h"

namespace leeway::sim {
namespace {

constexpr uint32_t kRanks = 3;
constexpr uint32_t kServers = 2;
constexpr int kSteps = 200;

class ForgedLives {
 public:
  // `believes`: the servers accept every incarnation as one that was given out.
  ForgedLives(uint64_t seed, bool believes)
      : draws_(seed, RandomPurpose::kGenerate), believes_(believes) {
    for (uint32_t rank = 0; rank < kRanks; ++rank) Begin(rank);
    for (Server& server : servers_) Restart(server);
  }

  // Returns the first broken promise; empty if every promise holds.
  std::string Run() {
    for (int step = 0; step < kSteps && violation_.empty(); ++step) Step();
    for (uint32_t rank = 0; rank < kRanks && violation_.empty(); ++rank) {
      for (Server& server : servers_) {
        Register(rank);
        server.book.Learn(membership_->Incarnations());
        const absl::Status attached = Attach(server, rank, workers_[rank].incarnation);
        if (!attached.ok())
          violation_ = "a newest life is refused for good: " + attached.ToString();
      }
    }
    return violation_;
  }

 private:
  struct Worker {
    Identity process;
    uint64_t incarnation = 0;
  };
  struct Server {
    LifeBook book;
    std::optional<BlockCore> core;
  };
  struct Told {
    uint32_t server = 0;
    std::vector<uint64_t> incarnations;
  };

  void Step() {
    const auto rank = static_cast<uint32_t>(draws_.Below(kRanks));
    const auto server = static_cast<uint32_t>(draws_.Below(kServers));
    const uint64_t what = draws_.Below(100);
    if (what < 8) return Begin(rank);
    if (what < 10) return RestartCoordinator();
    if (what < 12) return Restart(servers_[server]);
    if (what < 30) return Register(rank);
    if (what < 45) return told_.push_back({server, membership_->Incarnations()});
    if (what < 60) return Deliver();
    if (what < 80) return Forge(servers_[server], rank);
    Attach(servers_[server], rank, workers_[rank].incarnation).IgnoreError();
  }

  void Begin(uint32_t rank) { workers_[rank] = {{"host", ++processes_, processes_}, 0}; }

  void Register(uint32_t rank) {
    const auto claimed = membership_->Claim(rank, workers_[rank].process, false, Time());
    if (!claimed.ok()) return;
    workers_[rank].incarnation = (*membership_)[rank].incarnation;
    given_[rank].insert(workers_[rank].incarnation);
    recorded_ = std::max(recorded_, workers_[rank].incarnation);
  }

  // The new coordinator knows the recorded incarnations that were given out, and nothing else.
  void RestartCoordinator() { membership_.emplace(kRanks, recorded_, Duration(1)); }

  void Restart(Server& server) {
    server.book = believes_ ? LifeBook() : LifeBook(kRanks);
    server.core.emplace(0, ConsistencyRules{.mode = Consistency::kAsync, .workers = kRanks});
  }

  // Delivers a message late, out of order, twice or never.
  void Deliver() {
    if (told_.empty()) return;
    const size_t which = draws_.Below(told_.size());
    servers_[told_[which].server].book.Learn(told_[which].incarnations);
    if (draws_.Below(2) == 0) told_.erase(told_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void Forge(Server& server, uint32_t rank) {
    const uint64_t near = workers_[rank].incarnation + 1 + draws_.Below(3);
    const uint64_t forged[] = {UINT64_MAX, draws_.NextU64(), near};
    Attach(server, rank, forged[draws_.Below(3)]).IgnoreError();
  }

  absl::Status Attach(Server& server, uint32_t rank, uint64_t incarnation) {
    const absl::Status known = server.book.Check(rank, incarnation);
    if (!known.ok()) return known;
    const absl::Status attached = server.core->OnAttach(rank, incarnation).status();
    if (attached.ok() && !given_[rank].contains(incarnation)) {
      violation_ = "a life that nobody was given has attached";
    }
    return attached;
  }

  RandomStream draws_;
  const bool believes_;
  std::optional<Membership> membership_{std::in_place, kRanks, 0, Duration(1)};
  uint64_t recorded_ = 0;
  uint32_t processes_ = 0;
  Worker workers_[kRanks];
  std::set<uint64_t> given_[kRanks];
  Server servers_[kServers];
  std::vector<Told> told_;
  std::string violation_;
};

TEST_CASE("no schedule lets in a life that nobody was given, or keeps out one that was") {
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    INFO("seed " << seed);
    REQUIRE(ForgedLives(seed, false).Run() == "");
  }
}

TEST_CASE("servers that believe every incarnation are found out") {
  uint64_t seed = 0;
  while (seed < 100 && ForgedLives(seed, true).Run().empty()) ++seed;
  CHECK(seed < 100);
}

}  // namespace
}  // namespace leeway::sim
