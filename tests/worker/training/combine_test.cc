// Workers of one host that combine their contributions, each with an exchange of its own, in one
// process.
#include <atomic>
#include <thread>

#include "client/calls/host_group.h"
#include "tests/catch.h"
#include "tests/worker/training/exchange_rig.h"

namespace leeway::combine {
namespace {

using testing::Delta;
using testing::FakeRequest;
using testing::Gradient;
using testing::Rig;
using testing::Sgd;

// Returns what a worker has sent for one block at one clock.
std::vector<FakeRequest> SentBy(const Rig& rig, uint64_t clock, uint32_t block) {
  std::vector<FakeRequest> sent;
  for (const FakeRequest& request : rig.model->requests()) {
    const bool same = request.header.clock() == clock && request.header.block() == block;
    if (same && request.method == "PushPull") sent.push_back(request);
  }
  return sent;
}

// Workers 0 to W - 1 of a host. As in sync mode, servers answer a block of a clock once all of its
// requests are there. Each worker has a fake model of its own, to which it alone contributes.
struct Host {
  Host(uint32_t workers, const v1::Exchange& exchange, uint64_t generation = 1) {
    for (uint32_t rank = 0; rank < workers; ++rank) {
      rigs.push_back(std::make_unique<Rig>(exchange));
      memories.push_back(*ContributionMemory::Make(testing::kTotal));
      v1::HostGroupMember& member = *members.add_members();
      member.set_rank(rank);
      *member.mutable_contributions() = memories.back()->Offer();
    }
    for (uint32_t rank = 0; rank < workers; ++rank) Open(rank, generation);
  }
  void Open(uint32_t rank, uint64_t generation) {
    Rig& rig = *rigs[rank];
    const BlockLayout& layout = rig.client->layout();
    groups.push_back(*HostGroup::Open({.rank = rank, .generation = generation, .members = members},
                                      layout, *memories[rank]));
    rig.model->script = [this](const FakeRequest& request) {
      if (request.method != "PushPull") return absl::OkStatus();
      const uint64_t clock = request.header.clock();
      const uint32_t block = request.header.block();
      if (request.header.combined()) {
        while (AllSent(clock, block) == 0) std::this_thread::yield();
      }
      return absl::OkStatus();
    };
  }
  // Whether the leader has sent the block's sum.
  uint64_t AllSent(uint64_t clock, uint32_t block) const {
    return SentBy(*rigs[0], clock, block).size();
  }
  testing::Driven* Make(uint32_t rank) {
    Rig& rig = *rigs[rank];
    auto made = testing::Driven::Make(MakeServerCarrier(*rig.client, groups[rank].get()),
                                      [&](Carrier& carrier) -> RunnerContext {
                                        return {.job = rig.job,
                                                .schema = rig.schema,
                                                .length = rig.length,
                                                .rank = rank,
                                                .carrier = carrier,
                                                .backend = *rig.backend,
                                                .steps = rig.steps,
                                                .listener = rig.notes};
                                      });
    REQUIRE(made.ok());
    rig.exchanges.push_back(*std::move(made));
    return rig.exchanges.back().get();
  }
  // All workers run `clocks` clocks of `steps`, each on a thread of its own.
  void Run(uint64_t clocks, uint64_t steps) {
    std::vector<testing::Driven*> exchanges;
    for (uint32_t rank = 0; rank < rigs.size(); ++rank) exchanges.push_back(Make(rank));
    std::vector<std::thread> threads;
    std::atomic<uint32_t> failed{0};
    for (testing::Driven* exchange : exchanges) {
      threads.emplace_back([exchange, clocks, steps, &failed] {
        bool ok = exchange->Begin(0).ok();
        for (uint64_t clock = 0; ok && clock < clocks; ++clock) {
          ok = exchange->Run({.clock = clock, .first_step = clock * steps, .steps = steps}).ok();
        }
        ok = ok && exchange->Settle().ok();
        failed += ok ? 0 : 1;
      });
    }
    for (std::thread& thread : threads) thread.join();
    REQUIRE(failed == 0);
  }

  // The rigs have the exchanges, which end before the groups.
  std::vector<std::unique_ptr<ContributionMemory>> memories;
  std::vector<std::unique_ptr<HostGroup>> groups;
  v1::HostGroup members;
  std::vector<std::unique_ptr<Rig>> rigs;
};

// Gives worker r at step t its gradient, and 2 + r examples.
void GiveData(Host& host) {
  for (uint32_t rank = 0; rank < host.rigs.size(); ++rank) {
    auto& steps = host.rigs[rank]->steps;
    steps.gradient = [rank](uint64_t step) {
      return static_cast<float>(10 * rank) + static_cast<float>(step);
    };
    steps.examples = [rank](uint64_t) { return 2 + rank; };
    steps.statistic = [rank](uint64_t) { return static_cast<float>(rank); };
  }
}
double MeanOfRanks(uint32_t workers, double of_rank) {
  double sum = 0, all = 0;
  for (uint32_t rank = 0; rank < workers; ++rank) {
    sum += (2.0 + rank) * of_rank * rank;
    all += 2.0 + rank;
  }
  return sum / all;
}
uint64_t ExamplesOf(uint32_t workers) {
  uint64_t all = 0;
  for (uint32_t rank = 0; rank < workers; ++rank) all += 2 + rank;
  return all;
}

TEST_CASE("the leader sends the gradients' mean once, the others send none") {
  const uint32_t workers = GENERATE(2, 4);
  Host host(workers, Gradient(1));
  GiveData(host);
  host.Run(5, 1);
  for (uint64_t clock = 0; clock < 5; ++clock) {
    for (uint32_t block = 0; block < 2; ++block) {
      const auto sent = SentBy(*host.rigs[0], clock, block);
      REQUIRE(sent.size() == 1);
      CHECK_FALSE(sent[0].header.combined());
      CHECK(sent[0].header.examples() == ExamplesOf(workers));
      CHECK(sent[0].values[0] == Approx(MeanOfRanks(workers, 10) + static_cast<double>(clock)));
      if (block == 1) CHECK(sent[0].values[1] == Approx(MeanOfRanks(workers, 1)));
      for (uint32_t rank = 1; rank < workers; ++rank) {
        const auto note = SentBy(*host.rigs[rank], clock, block);
        REQUIRE(note.size() == 1);
        CHECK(note[0].header.combined());
        CHECK(note[0].payload.empty());
      }
    }
  }
}

TEST_CASE("accumulated batches are combined as one contribution") {
  Host host(2, Gradient(3));
  GiveData(host);
  host.Run(2, 3);
  for (uint64_t clock = 0; clock < 2; ++clock) {
    const auto sent = SentBy(*host.rigs[0], clock, 0);
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].header.examples() == 3 * ExamplesOf(2));
    // The mean of steps 3c, 3c + 1 and 3c + 2.
    CHECK(sent[0].values[0] == Approx(MeanOfRanks(2, 10) + 3 * static_cast<double>(clock) + 1));
  }
}

TEST_CASE("a contribution that is left out counts for nothing in the sum") {
  v1::Exchange choice = Gradient(1);
  choice.set_on_bad_gradient(v1::BAD_GRADIENT_SKIP);
  const uint32_t bad = GENERATE(0, 1);
  Host host(2, choice);
  GiveData(host);
  host.rigs[bad]->steps.gradient = [](uint64_t) { return NAN; };
  host.Run(2, 1);
  const uint32_t good = 1 - bad;
  for (uint64_t clock = 0; clock < 2; ++clock) {
    const auto sent = SentBy(*host.rigs[0], clock, 0);
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].header.examples() == 2 + good);
    CHECK(sent[0].values[0] == 10.0f * static_cast<float>(good) + static_cast<float>(clock));
  }
}

TEST_CASE("changes after local steps are combined") {
  const uint32_t workers = GENERATE(2, 4);
  Host host(workers, Delta(Sgd(0.5)));
  GiveData(host);
  host.Run(3, 3);
  for (uint64_t clock = 0; clock < 3; ++clock) {
    const auto sent = SentBy(*host.rigs[0], clock, 0);
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].header.examples() == 3 * ExamplesOf(workers));
    // Half of the gradients of steps 3c, 3c + 1 and 3c + 2.
    const double steps = 3 * (3 * static_cast<double>(clock) + 1);
    CHECK(sent[0].values[0] == Approx(0.5 * (MeanOfRanks(workers, 30) + steps)));
    CHECK(SentBy(*host.rigs[0], clock, 1)[0].values[1] == Approx(MeanOfRanks(workers, 1)));
  }
}

TEST_CASE("a leader whose wait is broken off ends with CANCELLED") {
  Host host(2, Gradient(1));
  testing::Driven* leader = host.Make(0);
  REQUIRE(leader->Begin(0).ok());
  std::thread breaker([&] {
    while (host.groups[0]->Waiting().empty()) std::this_thread::yield();
    host.groups[0]->Cancel();
  });
  const auto report = leader->Run({.clock = 0, .first_step = 0, .steps = 1});
  breaker.join();
  CHECK(absl::IsCancelled(report.status()));
  CHECK_THAT(std::string(report.status().message()),
             Catch::Contains("waiting for worker 1 of this host"));
  CHECK(host.AllSent(0, 0) == 0);
}

}  // namespace
}  // namespace leeway::combine
