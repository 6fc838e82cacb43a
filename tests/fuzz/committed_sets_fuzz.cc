// Reads bytes as the life of a server's blocks while the coordinator decides which contributions
// make a clock. BlockCore and HeldBook get true and stale messages, and sets that come early, late
// and twice. A book of all contributions decides what may be applied and what may not.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "server/core/block_core.h"
#include "server/core/held_book.h"
#include "tests/fuzz/fuzz_input.h"

namespace leeway::committed_sets {
namespace {

constexpr size_t kInputsMax = 400;
constexpr uint32_t kBlocksMax = 3;

using Set = std::vector<uint32_t>;

ConsistencyRules RulesOf(FuzzInput& input) {
  ConsistencyRules rules;
  rules.workers = 1 + input.Below(4);
  rules.elastic = input.Flag();
  rules.cut_every = input.Below(4);
  rules.committed_sets = true;
  return rules;
}

struct Named {
  uint32_t rank = 0;
  uint64_t clock = 0;
  auto operator<=>(const Named&) const = default;
};

// One block and its book.
class Block {
 public:
  Block(uint32_t number, const ConsistencyRules& rules, std::map<uint64_t, Set>& sets)
      : rules_(rules), sets_(sets), core_(number, rules) {
    Take(core_.OnInitialized({}));
  }

  uint64_t version() const { return version_; }
  bool Has(uint32_t rank, uint64_t clock) const { return core_.has(rank, clock); }
  bool Holds(const Named& named) const {
    return std::any_of(held_.begin(), held_.end(),
                       [&named](const auto& held) { return held.second == named; });
  }

  void Attach(uint32_t rank, uint64_t incarnation) {
    const auto clock = core_.OnAttach(rank, incarnation);
    if (Fenced(rank, incarnation, clock.status())) return;
    PromiseOk(clock.status(), "only a stranger or an older life is refused");
    const bool out = Out({rank, version_});
    Promise(*clock == version_ + (out ? 1 : 0), "a new life goes on at the first open clock");
  }

  // Returns whether the contribution was accepted.
  bool Contribute(const Sender& sender, bool wants_reply) {
    const RequestId request = ++requests_;
    const Named named = {sender.rank, sender.clock};
    asked_[request] = {wants_reply, sender.clock + 1, named};
    const bool was_applied = applied_.contains(named);
    const bool was_held = Holds(named);
    Decisions decisions = core_.OnContribution(sender, request, wants_reply, ++now_);
    const absl::Status refusal = RefusalOf(decisions);
    if (Fenced(sender.rank, sender.incarnation, refusal)) {
      Promise(!decisions.accepted, "a stranger's contribution is not accepted");
    } else {
      PromiseFits(refusal, named, wants_reply);
    }
    if (decisions.accepted) {
      Promise(!was_applied && !was_held, "a contribution is accepted once");
      Promise(!Out(named), "what is not in its clock's set is not accepted");
      held_[request] = named;
    }
    const bool accepted = decisions.accepted;
    Take(std::move(decisions));
    return accepted;
  }

  void Read(const Sender& sender) {
    const RequestId request = ++requests_;
    asked_[request] = {true, sender.clock};
    Decisions decisions = core_.OnRead(sender, request, ++now_);
    Fenced(sender.rank, sender.incarnation, RefusalOf(decisions));
    Take(std::move(decisions));
  }

  void Commit(uint64_t clock, const Set& set) { Take(core_.OnCommitted(clock, set)); }
  void SetLive(uint32_t rank, bool live) { Take(core_.OnSetLive(rank, live)); }

  bool running() const { return !running_.empty(); }

  void Applied() {
    if (running_.empty()) return;
    for (const RequestId request : running_) {
      const Named& named = held_.at(request);
      Promise(applied_.insert(named).second, "a contribution is applied once");
      newest_[named.rank] = named.clock;
      held_.erase(request);
    }
    running_.clear();
    ++version_;
    Take(core_.OnApplied());
  }

  // Rejects the update: its first contribution is not finite. Returns that contribution, which may
  // come again.
  std::optional<Named> Rejected() {
    if (running_.empty()) return std::nullopt;
    const RequestId bad = running_.front();
    const Named named = held_.at(bad);
    held_.erase(bad);
    running_.clear();
    Take(core_.OnRejected({{bad, absl::InvalidArgumentError("not finite")}}));
    return named;
  }

  void Tick(uint64_t back) {
    Decisions decisions = core_.OnTick(now_ + 1 - std::min(now_ + 1, back));
    for (const Refusal& refusal : decisions.refusals) {
      Promise(absl::IsUnavailable(refusal.status), "who waits in vain is UNAVAILABLE");
    }
    Take(std::move(decisions));
    if (back == 0) Promise(asked_.empty(), "who has waited long enough is answered");
  }

 private:
  struct Asked {
    bool reads = false;
    uint64_t version = 0;
    // The contribution, if it is one.
    Named named = {};
  };

  static absl::Status RefusalOf(const Decisions& decisions) {
    return decisions.refusals.empty() ? absl::OkStatus() : decisions.refusals[0].status;
  }

  // Whether the clock's set is known and the contribution is not in it.
  bool Out(const Named& named) const {
    const auto set = sets_.find(named.clock);
    if (set == sets_.end()) return false;
    return !std::binary_search(set->second.begin(), set->second.end(), named.rank);
  }

  // Whether the name alone is refused, and rightly.
  bool Fenced(uint32_t rank, uint64_t incarnation, const absl::Status& status) {
    if (rank >= rules_.workers) {
      Promise(absl::IsInvalidArgument(status), "a stranger is refused");
      return true;
    }
    uint64_t& newest = incarnations_[rank];
    if (incarnation < newest) {
      Promise(absl::IsAborted(status), "an older life is refused");
      return true;
    }
    newest = incarnation;
    Promise(!absl::IsAborted(status), "the newest life is not refused for its age");
    return false;
  }

  void PromiseFits(const absl::Status& refusal, const Named& named, bool wants_reply) {
    if (refusal.ok()) return;
    if (absl::IsAlreadyExists(refusal)) {
      const auto newest = newest_.find(named.rank);
      const bool repeats = newest != newest_.end() && newest->second == named.clock;
      // The version of its answer is not kept any more.
      const uint64_t readable = named.clock + (rules_.elastic ? 1 : 2);
      if (repeats) {
        return Promise(wants_reply && readable < version_,
                       "the rank's newest that is applied is not called too late");
      }
      return Promise(Out(named) || named.clock < version_, "who is in the set is not too late");
    }
    Promise(absl::IsFailedPrecondition(refusal), "a contribution is early, or too late");
    Promise(named.clock > version_, "the current clock's contribution is not early");
  }

  void Take(Decisions decisions) {
    for (const RequestId request : decisions.dropped) {
      const auto held = held_.find(request);
      Promise(held != held_.end(), "what is dropped was held");
      held_.erase(held);
    }
    for (const Answer& answer : decisions.answers) TakeAnswer(answer);
    for (const Refusal& refusal : decisions.refusals) {
      Promise(asked_.erase(refusal.request) == 1, "who is refused has asked, and was not answered");
    }
    if (decisions.update) TakeUpdate(*decisions.update);
    Promise(core_.progress().version == version_, "a version is an update");
  }

  void TakeAnswer(const Answer& answer) {
    const auto found = asked_.find(answer.request);
    Promise(found != asked_.end(), "who is answered has asked, and was not answered");
    const Asked asked = found->second;
    asked_.erase(found);
    if (!asked.reads) {
      return Promise(applied_.contains(asked.named), "what is acknowledged is applied");
    }
    const uint64_t given = version_ - (answer.which == Readable::kPrevious ? 1 : 0);
    const bool before = rules_.elastic && given + 1 == asked.version;
    Promise(given == asked.version || before, "a reader that starts clock c gets version c");
  }

  void TakeUpdate(const Update& update) {
    Promise(running_.empty(), "one update runs at a time");
    Promise(update.clock == version_, "clock c is applied at version c");
    const auto set = sets_.find(version_);
    Promise(set != sets_.end(), "nothing is applied whose set is not known");
    Set ranks;
    for (const RequestId request : update.contributions) {
      const auto held = held_.find(request);
      Promise(held != held_.end(), "an update is of what is held");
      Promise(held->second.clock == version_, "an update is of its clock");
      ranks.push_back(held->second.rank);
    }
    Promise(ranks == set->second, "an update is of its set, whole and in rank order");
    running_ = update.contributions;
  }

  const ConsistencyRules rules_;
  // The sets of the whole server.
  const std::map<uint64_t, Set>& sets_;
  BlockCore core_;
  uint64_t version_ = 0;
  uint64_t now_ = 0;
  RequestId requests_ = 0;
  std::map<uint32_t, uint64_t> incarnations_;
  std::map<RequestId, Asked> asked_;
  std::map<RequestId, Named> held_;
  std::set<Named> applied_;
  // By rank: the clock of the newest contribution of these.
  std::map<uint32_t, uint64_t> newest_;
  RequestIds running_;
};

class World {
 public:
  explicit World(FuzzInput& input)
      : input_(input),
        rules_(RulesOf(input)),
        blocks_count_(1 + input.Below(kBlocksMax)),
        backup_(input.Below(rules_.workers)),
        book_({.workers = rules_.workers,
               .backup = backup_,
               .live_only = input.Flag(),
               .blocks = blocks_count_}),
        lives_(rules_.workers) {
    for (uint32_t i = 0; i < blocks_count_; ++i) blocks_.emplace_back(i, rules_, sets_);
    for (uint32_t i = 0; i < blocks_count_; ++i) book_.OnLoaded(0);
  }

  void Run() {
    for (size_t i = 0; i < kInputsMax && !input_.empty(); ++i) Step();
    Finish();
  }

 private:
  void Step() {
    Block& block = blocks_[input_.Below(blocks_count_)];
    switch (input_.Below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return Contribute(block);
      case 4:
        return block.Attach(input_.Below(rules_.workers + 1), input_.Below(4));
      case 5:
        return block.Read(From(block));
      case 6:
      case 7:
        return Hear();
      case 8:
        return Decide();
      case 9:
        return block.Applied();
      case 10:
        return input_.Flag() ? Reject(block) : SetLive();
      default:
        return block.Tick(1 + input_.Below(8));
    }
  }

  Sender From(const Block& block) {
    const uint32_t rank = input_.Below(rules_.workers + 1);
    const uint8_t lie = input_.Byte();
    Sender sender = {rank, rank < lives_.size() ? lives_[rank] : 0, block.version()};
    if (lie == 1 && rank < lives_.size()) sender.incarnation = ++lives_[rank];
    if (lie == 2 && sender.incarnation > 0) --sender.incarnation;
    if (lie >= 0xf8) sender.clock = input_.Number();
    if (lie >= 0xc0 && lie < 0xf8) sender.clock += lie % 4 - (sender.clock > 0 ? 1 : 0);
    return sender;
  }

  void Contribute(Block& block) {
    const Sender sender = From(block);
    if (block.Contribute(sender, input_.Flag())) Accepted(sender);
  }

  void Accepted(const Sender& sender) { book_.OnAccepted(sender.rank, sender.clock); }

  void Reject(Block& block) {
    if (const auto refused = block.Rejected()) book_.OnRefused(refused->rank, refused->clock);
  }

  void SetLive() {
    const uint32_t rank = input_.Below(rules_.workers + 1);
    const bool live = input_.Flag();
    for (Block& block : blocks_) block.SetLive(rank, live);
    book_.OnLive(rank, live);
  }

  // Checks what the coordinator would be told about the first clock that has no set.
  void Hear() {
    if (input_.Flag()) book_.TellAgain();
    const auto told = book_.Take();
    if (!told) return;
    const bool something = !told->ranks.empty() || !told->refused.empty();
    Promise(something && told->ranks.size() == told->held.size(), "something is told");
    for (const uint32_t rank : told->refused) {
      const bool named = told->clock > 0 && std::ranges::count(sets_[told->clock - 1], rank) > 0;
      Promise(named, "who was refused is in the latest set");
    }
    if (told->ranks.empty()) return;
    Promise(std::is_sorted(told->ranks.begin(), told->ranks.end()), "ranks rise");
    Promise(!sets_.contains(told->clock), "nobody wants to hear of a clock that has its set");
    told_ = *told;
  }

  // Commits mostly what was reported; sometimes a set that only another server could have reported.
  void Decide() {
    const uint64_t open = sets_.empty() ? 0 : sets_.rbegin()->first + 1;
    Set set;
    if (told_ && told_->clock == open && input_.Below(4) != 0) {
      set = told_->ranks;
    } else {
      const uint8_t members = input_.Byte();
      for (uint32_t rank = 0; rank < rules_.workers; ++rank) {
        if (members >> rank & 1) set.push_back(rank);
      }
    }
    if (set.empty()) return;
    sets_[open] = set;
    for (Block& block : blocks_) block.Commit(open, set);
    book_.OnCommitted(open);
    // Another set for the same clock, and an old set, change nothing.
    for (Block& block : blocks_) block.Commit(open, {0});
    if (open > 0) {
      for (Block& block : blocks_) block.Commit(open - 1, {rules_.workers - 1});
    }
  }

  // Ranks in a set send what is missing. Then every block comes to the first open clock.
  void Finish() {
    for (Block& block : blocks_) {
      for (auto set = sets_.lower_bound(block.version()); set != sets_.end(); ++set) {
        while (block.running()) block.Applied();
        for (const uint32_t rank : set->second) {
          const Sender sender = {rank, uint64_t{1} << 40, set->first};
          if (!block.Has(rank, set->first)) block.Contribute(sender, false);
        }
        while (block.running()) block.Applied();
        Promise(block.version() > set->first, "a clock whose set is here is completed");
      }
      block.Tick(0);
    }
  }

  FuzzInput& input_;
  const ConsistencyRules rules_;
  const uint32_t blocks_count_;
  const uint32_t backup_;
  std::map<uint64_t, Set> sets_;
  std::vector<Block> blocks_;
  HeldBook book_;
  std::vector<uint64_t> lives_;
  std::optional<HeldClock> told_;
};

}  // namespace
FUZZ_TARGET(committed_sets) { World(input).Run(); }

}  // namespace leeway::committed_sets
