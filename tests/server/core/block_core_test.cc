#include "server/core/block_core.h"

#include <algorithm>
#include <map>
#include <set>

#include "common/philox.h"
#include "tests/catch.h"

namespace leeway {
namespace {

ConsistencyRules Sync(uint32_t workers) { return {Consistency::kSync, 0, workers, false, 0}; }
ConsistencyRules Bounded(uint32_t workers, uint64_t s) {
  return {Consistency::kBounded, s, workers, false, 0};
}
ConsistencyRules Async(uint32_t workers) { return {Consistency::kAsync, 0, workers, false, 0}; }

BlockCore Started(const ConsistencyRules& rules) {
  BlockCore core(7, rules);
  core.OnInitialized({});
  return core;
}

absl::StatusCode OnlyRefusal(const Decisions& decisions) {
  REQUIRE(decisions.refusals.size() == 1);
  CHECK(decisions.answers.empty());
  CHECK_FALSE(decisions.accepted);
  return decisions.refusals[0].status.code();
}

TEST_CASE(
    "sync: the update begins with the last contribution, in rank order, and frees the readers") {
  BlockCore core = Started(Sync(3));
  CHECK_FALSE(core.OnContribution({2, 1, 0}, 102, true, 0).update);
  CHECK_FALSE(core.OnContribution({0, 1, 0}, 100, true, 0).update);
  Decisions last = core.OnContribution({1, 1, 0}, 101, true, 0);
  REQUIRE(last.update);
  CHECK(last.update->clock == 0);
  CHECK(last.update->contributions == std::vector<RequestId>{100, 101, 102});
  CHECK(last.answers.empty());
  Decisions applied = core.OnApplied();
  REQUIRE(applied.answers.size() == 3);
  for (const Answer& answer : applied.answers) {
    CHECK(answer.which == Readable::kCurrent);
    CHECK(answer.staleness == 0);
  }
  CHECK(core.progress().version == 1);
}

TEST_CASE("sync: a repeated contribution is not accepted again and waits like the first") {
  BlockCore core = Started(Sync(2));
  CHECK(core.OnContribution({0, 1, 0}, 1, true, 0).accepted);
  CHECK_FALSE(core.OnContribution({0, 1, 0}, 2, true, 0).accepted);
  REQUIRE(core.OnContribution({1, 1, 0}, 3, true, 0).update);
  CHECK(core.OnApplied().answers.size() == 3);
  Decisions late = core.OnContribution({0, 1, 0}, 4, true, 0);
  CHECK_FALSE(late.accepted);
  REQUIRE(late.answers.size() == 1);
  CHECK(late.answers[0].duplicate);
}

TEST_CASE("sync: a worker that died in between reads the version before, and only that one") {
  BlockCore core = Started(Sync(2));
  for (uint64_t clock = 0; clock < 2; ++clock) {
    core.OnContribution({0, 1, clock}, 1, false, 0);
    REQUIRE(core.OnContribution({1, 1, clock}, 2, false, 0).update);
    core.OnApplied();
  }
  auto which = [&](uint64_t clock) {
    Decisions decisions = core.OnRead({0, 2, clock}, 9, 0);
    REQUIRE(decisions.answers.size() == 1);
    return decisions.answers[0].which;
  };
  CHECK(which(2) == Readable::kCurrent);
  CHECK(which(1) == Readable::kPrevious);
  CHECK(OnlyRefusal(core.OnRead({0, 2, 0}, 9, 0)) == absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("sync with an elastic exchange answers the version before, also to a repeated request") {
  ConsistencyRules rules = Sync(1);
  rules.elastic = true;
  BlockCore core = Started(rules);
  REQUIRE(core.OnContribution({0, 1, 0}, 1, true, 0).update);
  Decisions applied = core.OnApplied();
  REQUIRE(applied.answers.size() == 1);
  CHECK(applied.answers[0].which == Readable::kPrevious);
  Decisions repeated = core.OnContribution({0, 1, 0}, 2, true, 0);
  REQUIRE(repeated.answers.size() == 1);
  CHECK(repeated.answers[0].which == Readable::kPrevious);
}

TEST_CASE("an older life of a rank is refused for good") {
  BlockCore core = Started(Async(2));
  CHECK(core.OnAttach(1, 5).value() == 0);
  CHECK(OnlyRefusal(core.OnContribution({1, 4, 0}, 1, true, 0)) == absl::StatusCode::kAborted);
  CHECK(OnlyRefusal(core.OnRead({1, 4, 0}, 1, 0)) == absl::StatusCode::kAborted);
  CHECK(core.OnAttach(1, 4).status().code() == absl::StatusCode::kAborted);
  CHECK(core.OnContribution({1, 5, 0}, 2, false, 0).accepted);
}

TEST_CASE("clocks come one after the other, from ranks that exist") {
  for (const ConsistencyRules& rules : {Sync(2), Bounded(2, 1), Async(2)}) {
    BlockCore core = Started(rules);
    CHECK(OnlyRefusal(core.OnContribution({0, 1, 1}, 1, true, 0)) ==
          absl::StatusCode::kFailedPrecondition);
    CHECK(OnlyRefusal(core.OnContribution({2, 1, 0}, 1, true, 0)) ==
          absl::StatusCode::kInvalidArgument);
    CHECK(OnlyRefusal(core.OnRead({0, 1, 1}, 1, 0)) == absl::StatusCode::kFailedPrecondition);
  }
}

TEST_CASE("sync: nobody hands in clock c + 1 before c is complete") {
  BlockCore core = Started(Sync(2));
  core.OnContribution({0, 1, 0}, 1, false, 0);
  CHECK(OnlyRefusal(core.OnContribution({0, 1, 1}, 2, false, 0)) ==
        absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("before its first version a block refuses contributions and lets readers wait") {
  BlockCore core(7, Async(1));
  CHECK(OnlyRefusal(core.OnContribution({0, 1, 0}, 1, true, 0)) == absl::StatusCode::kUnavailable);
  CHECK(core.OnRead({0, 1, 0}, 2, 0).answers.empty());
  CHECK(core.OnInitialized({}).answers.size() == 1);
}

TEST_CASE("bounded: a reader waits for the slowest, and is told its staleness") {
  BlockCore core = Started(Bounded(2, 1));
  auto hand_in = [&](uint32_t rank, uint64_t clock) {
    REQUIRE(core.OnContribution({rank, 1, clock}, 10 * rank + clock, true, 0).update);
    return core.OnApplied();
  };
  Decisions first = hand_in(0, 0);
  REQUIRE(first.answers.size() == 1);
  CHECK(first.answers[0].staleness == 1);
  CHECK(hand_in(0, 1).answers.empty());  // would start clock 2, rank 1 is at 0
  Decisions freed = hand_in(1, 0);
  CHECK(freed.answers.size() == 2);
}

TEST_CASE("bounded: who is lost holds nobody up, and does again when it is back") {
  BlockCore core = Started(Bounded(2, 0));
  core.OnContribution({0, 1, 0}, 1, true, 0);
  CHECK(core.OnApplied().answers.empty());
  CHECK(core.OnSetLive(1, false).answers.size() == 1);
  core.OnSetLive(1, true);
  core.OnContribution({0, 1, 1}, 2, true, 0);
  CHECK(core.OnApplied().answers.empty());
}

TEST_CASE("one update at a time, in the order of acceptance; readers see finished states only") {
  BlockCore core = Started(Async(3));
  Decisions first = core.OnContribution({2, 1, 0}, 12, true, 0);
  REQUIRE(first.update);
  CHECK(first.answers.empty());
  CHECK_FALSE(core.OnContribution({0, 1, 0}, 10, true, 0).update);
  CHECK(core.OnReadLatest(99, 0).answers.empty());
  Decisions next = core.OnApplied();
  REQUIRE(next.update);
  CHECK(next.update->contributions == std::vector<RequestId>{10});
  CHECK(next.answers.size() == 2);
}

TEST_CASE("a wait that is given up names who is missing") {
  BlockCore core = Started(Sync(3));
  core.OnContribution({1, 1, 0}, 1, true, 5);
  core.OnSetLive(2, false);
  CHECK(core.OnTick(4).refusals.empty());
  Decisions ticked = core.OnTick(5);
  REQUIRE(ticked.refusals.size() == 1);
  CHECK(ticked.refusals[0].status.code() == absl::StatusCode::kUnavailable);
  CHECK(ticked.refusals[0].status.message() ==
        "block 7, clock 1: waiting for worker 0 (at clock 0), worker 2 (at clock 0, lost)");
  CHECK_FALSE(core.has_waiters());
}

TEST_CASE(
    "sync: what was before is refused where it is not kept: at the start, and while an update "
    "runs") {
  BlockCore core(7, Sync(2));
  core.OnInitialized({4, {4, 4}});
  CHECK(OnlyRefusal(core.OnRead({0, 1, 3}, 1, 0)) == absl::StatusCode::kFailedPrecondition);
  core.OnContribution({0, 1, 4}, 2, false, 0);
  REQUIRE(core.OnContribution({1, 1, 4}, 3, false, 0).update);
  CHECK(OnlyRefusal(core.OnRead({0, 1, 3}, 4, 0)) == absl::StatusCode::kFailedPrecondition);
  CHECK(core.OnRead({0, 1, 4}, 5, 0).answers.size() == 1);
  core.OnApplied();
  CHECK(core.OnRead({0, 1, 4}, 6, 0).answers.at(0).which == Readable::kPrevious);
}

TEST_CASE("sync: a cut is taken at its version, once") {
  ConsistencyRules rules = Sync(1);
  rules.cut_every = 2;
  BlockCore core = Started(rules);
  std::vector<uint64_t> cuts;
  for (uint64_t clock = 0; clock < 5; ++clock) {
    core.OnContribution({0, 1, clock}, 1, false, 0);
    if (auto cut = core.OnApplied().cut) cuts.push_back(*cut);
  }
  CHECK(cuts == std::vector<uint64_t>{2, 4});
}

TEST_CASE("without sync a cut is taken when the mean clock reaches it, whoever is lost") {
  ConsistencyRules rules = Async(2);
  rules.cut_every = 2;
  BlockCore core = Started(rules);
  std::vector<uint64_t> cuts;
  auto hand_in = [&](uint32_t rank, uint64_t clock) {
    core.OnContribution({rank, 1, clock}, 1, false, 0);
    if (auto cut = core.OnApplied().cut) cuts.push_back(*cut);
  };
  for (uint64_t clock = 0; clock < 3; ++clock) hand_in(0, clock);
  CHECK(cuts.empty());
  core.OnSetLive(1, false);
  hand_in(0, 3);
  CHECK(cuts == std::vector<uint64_t>{2});
  core.OnSetLive(1, true);
  for (uint64_t clock = 0; clock < 4; ++clock) hand_in(1, clock);
  CHECK(cuts == std::vector<uint64_t>{2, 4});
}

TEST_CASE("a block goes on from a checkpoint's progress") {
  ConsistencyRules rules = Async(2);
  rules.cut_every = 4;
  BlockCore core(0, rules);
  core.OnInitialized({17, {9, 8}});
  CHECK(core.OnAttach(0, 1).value() == 9);
  CHECK(core.OnAttach(1, 1).value() == 8);
  CHECK_FALSE(core.OnContribution({0, 1, 8}, 1, false, 0).accepted);
  CHECK(core.OnContribution({1, 1, 8}, 2, false, 0).accepted);
  CHECK_FALSE(core.OnApplied().cut);
  CHECK(core.progress().version == 18);
}

// Workers whose every request may be duplicated, repeated, lost and overtaken, and who may die and
// come back, against one block. Each contribution is counted when it is applied.
class RandomWorld {
 public:
  RandomWorld(const ConsistencyRules& rules, uint64_t seed)
      : rules_(rules), random_(seed, RandomPurpose::kEmulate, {99}), core_(Started(rules)) {
    for (uint32_t r = 0; r < rules.workers; ++r) workers_.push_back({});
  }

  void Run(uint64_t clocks) {
    for (int step = 0; step < 100000 && !Finished(clocks); ++step) {
      if (update_.has_value() && random_.Below(3) == 0) {
        Applied();
      } else {
        Act(static_cast<uint32_t>(random_.Below(workers_.size())), clocks);
      }
    }
    REQUIRE(Finished(clocks));
    while (update_.has_value()) Applied();
    for (uint32_t r = 0; r < workers_.size(); ++r) {
      for (uint64_t clock = 0; clock < clocks; ++clock) CHECK(applied_[{r, clock}] == 1);
    }
  }

 private:
  struct Worker {
    uint64_t incarnation = 1;
    uint64_t clock = 0;
  };
  struct Request {
    Sender sender;
    bool is_read = false;
  };

  bool Finished(uint64_t clocks) const {
    return std::all_of(workers_.begin(), workers_.end(),
                       [&](const Worker& worker) { return worker.clock >= clocks; });
  }

  void Act(uint32_t rank, uint64_t clocks) {
    Worker& worker = workers_[rank];
    const uint64_t dice = random_.Below(20);
    if (dice == 0) {  // killed and restarted
      worker.clock = core_.OnAttach(rank, ++worker.incarnation).value();
      return;
    }
    if (dice == 1 && !sent_.empty()) {  // the network repeats something old
      const Request old = sent_[random_.Below(sent_.size())];
      Send(old);
      return;
    }
    if (dice == 2) Take(core_.OnTick(now_));
    if (worker.clock < clocks) Send({{rank, worker.incarnation, worker.clock}, false});
  }

  void Send(const Request& request) {
    sent_.push_back(request);
    const RequestId id = ++last_request_;
    requests_[id] = request;
    Take(core_.OnContribution(request.sender, id, true, ++now_), id);
  }

  void Take(const Decisions& decisions, RequestId passed_in = 0) {
    if (decisions.accepted) contributions_[passed_in] = requests_[passed_in].sender;
    for (const Answer& answer : decisions.answers) Answered(answer);
    if (decisions.update.has_value()) {
      REQUIRE_FALSE(update_.has_value());
      update_ = decisions.update;
      if (rules_.mode == Consistency::kSync) CheckRankOrder(*update_);
    }
  }

  void CheckRankOrder(const Update& update) {
    REQUIRE(update.contributions.size() == rules_.workers);
    for (uint32_t r = 0; r < rules_.workers; ++r) {
      const Sender& sender = contributions_.at(update.contributions[r]);
      CHECK(sender.rank == r);
      CHECK(sender.clock == update.clock);
    }
  }

  void Applied() {
    for (RequestId request : update_->contributions) {
      const Sender& sender = contributions_.at(request);
      ++applied_[{sender.rank, sender.clock}];
    }
    update_.reset();
    Take(core_.OnApplied());
  }

  void Answered(const Answer& answer) {
    const Sender sender = requests_.at(answer.request).sender;
    if (random_.Below(4) == 0) return;  // the reply is lost
    const uint64_t starts = sender.clock + 1;
    for (uint32_t r = 0; r < rules_.workers; ++r) CheckSeen(r, starts, answer);
    Worker& worker = workers_[sender.rank];
    if (worker.incarnation == sender.incarnation) worker.clock = std::max(worker.clock, starts);
  }

  // What the consistency mode promises a reader that starts clock `starts`.
  void CheckSeen(uint32_t rank, uint64_t starts, const Answer& answer) {
    const uint64_t done = core_.progress().clocks[rank];
    if (rules_.mode == Consistency::kSync) {
      const uint64_t version =
          core_.progress().version - (answer.which == Readable::kPrevious ? 1 : 0);
      CHECK(version == starts);
    } else if (rules_.mode == Consistency::kBounded) {
      CHECK(done + rules_.staleness >= starts);
      CHECK(answer.staleness <= rules_.staleness);
    }
  }

  const ConsistencyRules rules_;
  RandomStream random_;
  BlockCore core_;
  std::vector<Worker> workers_;
  std::vector<Request> sent_;
  std::map<RequestId, Request> requests_;
  std::map<RequestId, Sender> contributions_;
  std::map<std::pair<uint32_t, uint64_t>, int> applied_;
  std::optional<Update> update_;
  RequestId last_request_ = 0;
  uint64_t now_ = 0;
};

TEST_CASE(
    "over random schedules every contribution is applied once and no reader sees too old a state") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomWorld(Sync(3), seed).Run(6);
    RandomWorld(Bounded(3, seed % 4), seed).Run(6);
    RandomWorld(Async(3), seed).Run(6);
  }
}

TEST_CASE("bounded: who is held up goes on when the slowest has come far enough, and not before") {
  constexpr uint32_t kRanks = 50;
  BlockCore core = Started(Bounded(kRanks, 2));
  const auto push = [&](uint32_t rank, uint64_t clock) {
    Decisions taken = core.OnContribution({rank, 1, clock}, 1000 * clock + rank, true, 0);
    REQUIRE(taken.update);
    return core.OnApplied().answers;
  };
  for (uint64_t clock = 0; clock < 3; ++clock) {
    for (uint32_t rank = 1; rank < kRanks; ++rank) {
      // They start clock 3 with rank 0 at 0: one too many.
      CHECK(push(rank, clock).size() == (clock < 2 ? 1 : 0));
    }
  }
  CHECK(core.has_waiters());
  const auto released = push(0, 0);
  CHECK(released.size() == kRanks);
  for (const Answer& answer : released) CHECK(answer.staleness <= 2);
  CHECK_FALSE(core.has_waiters());
}

TEST_CASE("bounded: who is held up is let go when the slowest is lost, and told when it waits") {
  BlockCore core = Started(Bounded(3, 0));
  const auto push = [&](uint32_t rank, uint64_t clock, RequestId request, uint64_t now) {
    REQUIRE(core.OnContribution({rank, 1, clock}, request, true, now).update);
    return core.OnApplied().answers.size();
  };
  CHECK(push(1, 0, 1, 10) == 0);
  CHECK(push(2, 0, 2, 20) == 0);
  const Decisions late = core.OnTick(10);
  CHECK(OnlyRefusal(late) == absl::StatusCode::kUnavailable);
  CHECK(late.refusals[0].request == 1);
  CHECK(late.refusals[0].status.message() == "block 7, clock 1: waiting for worker 0 (at clock 0)");
  CHECK(core.has_waiters());
  CHECK(core.OnSetLive(0, false).answers.size() == 1);
  CHECK_FALSE(core.has_waiters());
}

TEST_CASE("of many who are missing some are named, and the rest counted") {
  BlockCore core = Started(Sync(1000));
  core.OnContribution({0, 1, 0}, 1, true, 0);
  const std::string text(core.OnTick(0).refusals[0].status.message());
  CHECK(text.find("worker 8 (at clock 0) and 991 more") != std::string::npos);
  CHECK(text.size() < 400);
}

}  // namespace
}  // namespace leeway
