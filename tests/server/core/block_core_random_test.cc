#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/philox.h"
#include "server/core/block_core.h"
#include "tests/catch.h"
#include "tests/server/core/started.h"

namespace leeway::block_core_random {
namespace {

// Workers against one block. Every request may be duplicated, repeated, lost and overtaken, workers
// may die and come back, and updates may be rejected. Some contributions only want to hear that
// they are applied. Each contribution is counted when it is applied.
class RandomWorld {
 public:
  RandomWorld(const ConsistencyRules& rules, uint64_t seed)
      : rules_(rules), random_(seed, RandomPurpose::kEmulate, {99}), core_(Started(rules)) {
    for (uint32_t r = 0; r < rules.workers; ++r) workers_.push_back({});
  }

  void Run(uint64_t clocks) {
    for (int step = 0; step < 100000 && !Finished(clocks); ++step) {
      if (update_.has_value() && random_.Below(3) == 0) {
        random_.Below(8) == 0 ? Rejected() : Applied();
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
    bool wants_reply = true;
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
    if (dice == 1 && !sent_.empty()) {  // the network repeats an old request
      const Request old = sent_[random_.Below(sent_.size())];
      Send(old);
      return;
    }
    if (dice == 2) Take(core_.OnTick(now_));
    const bool wants_reply = random_.Below(2) == 0;
    if (worker.clock < clocks) Send({{rank, worker.incarnation, worker.clock}, wants_reply});
  }

  void Send(const Request& request) {
    sent_.push_back(request);
    const RequestId id = ++last_request_;
    requests_[id] = request;
    Take(core_.OnContribution(request.sender, id, request.wants_reply, ++now_), id);
  }

  void Take(const Decisions& decisions, RequestId passed_in = 0) {
    if (decisions.accepted) contributions_[passed_in] = requests_[passed_in].sender;
    for (RequestId request : decisions.dropped) contributions_.erase(request);
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

  // Rejects the update: its first contribution is not finite, and others may not be.
  void Rejected() {
    std::vector<Refusal> bad;
    for (RequestId request : update_->contributions) {
      if (!bad.empty() && random_.Below(2) == 0) continue;
      bad.push_back({request, absl::InvalidArgumentError("not finite")});
      // A later life of the sender may have been told to continue after this clock.
      const Sender sender = contributions_.extract(request).mapped();
      workers_[sender.rank].clock = std::min(workers_[sender.rank].clock, sender.clock);
    }
    update_.reset();
    Take(core_.OnRejected(bad));
  }

  void Answered(const Answer& answer) {
    const auto [sender, wants_reply] = requests_.at(answer.request);
    CHECK(applied_[{sender.rank, sender.clock}] == 1);
    if (random_.Below(4) == 0) return;  // the reply is lost
    const uint64_t starts = sender.clock + 1;
    for (uint32_t r = 0; wants_reply && r < rules_.workers; ++r) CheckSeen(r, starts, answer);
    Worker& worker = workers_[sender.rank];
    if (worker.incarnation == sender.incarnation) worker.clock = std::max(worker.clock, starts);
  }

  // Checks what the consistency mode promises a reader that starts clock `starts`.
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

}  // namespace
}  // namespace leeway::block_core_random
