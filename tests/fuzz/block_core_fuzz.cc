// Reads bytes as a sequence of legal inputs to a block's core. A book of what came and what was
// answered decides what may be refused and what may not.
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "server/core/block_core.h"
#include "tests/fuzz/fuzz_input.h"

namespace leeway::block_core {
namespace {

constexpr uint32_t kWorkersMax = 4;
constexpr size_t kInputsMax = 400;

ConsistencyRules RulesOf(FuzzInput& input) {
  ConsistencyRules rules;
  rules.mode = static_cast<Consistency>(input.Below(3));
  rules.staleness = input.Below(4);
  rules.workers = 1 + input.Below(kWorkersMax);
  rules.elastic = input.Flag();
  rules.cut_every = input.Below(4);
  return rules;
}

// A request that waits for its answer.
struct Asked {
  // If false, it only wants to hear that its contribution is applied.
  bool reads = false;
  bool latest = false;
  // The reader's rank.
  uint32_t rank = 0;
  uint64_t clock = 0;
};
struct Held {
  uint32_t rank = 0;
  uint64_t clock = 0;
};

class World {
 public:
  explicit World(FuzzInput& input)
      : input_(input), rules_(RulesOf(input)), core_(3, rules_), ranks_(rules_.workers) {}

  void Run() {
    for (size_t i = 0; i < kInputsMax && !input_.empty(); ++i) Step();
    if (!initialized_) Initialize({});
    while (!running_.empty()) Applied();
    Take(core_.OnTick(now_), true);
    Promise(asked_.empty(), "who has waited long enough is answered");
    Promise(!core_.has_waiters(), "nobody waits whom the driver does not know");
  }

 private:
  struct Rank {
    uint64_t incarnation = 0;
    uint64_t next = 0;
    uint64_t applied = 0;
  };

  void Step() {
    switch (input_.Below(9)) {
      case 0:
        return Initialize(Progress());
      case 1:
        return Attach();
      case 2:
      case 3:
      case 4:
        return Contribute();
      case 5:
        return Read();
      case 6:
        return running_.empty() ? Live() : Applied();
      case 7:
        return running_.empty() ? Live() : Rejected();
      default:
        return Tick();
    }
  }

  // Returns progress as a checkpoint may have it: in sync mode every rank is where the block is.
  BlockProgress Progress() {
    BlockProgress progress;
    progress.version = input_.Number() / 2;
    for (uint32_t r = 0; r < rules_.workers; ++r) {
      progress.clocks.push_back(rules_.mode == Consistency::kSync ? progress.version
                                                                  : input_.Below(8));
    }
    return progress;
  }

  void Initialize(BlockProgress progress) {
    if (!initialized_) {
      version_ = progress.version;
      for (uint32_t r = 0; r < progress.clocks.size(); ++r) {
        ranks_[r].next = ranks_[r].applied = progress.clocks[r];
      }
    }
    initialized_ = true;
    Take(core_.OnInitialized(std::move(progress)));
  }

  Sender From() {
    Sender sender;
    sender.rank = input_.Below(rules_.workers + 1);
    const uint8_t life = input_.Below(8);
    if (sender.rank < rules_.workers) {
      sender.incarnation = ranks_[sender.rank].incarnation + (life == 1) - (life == 2);
      sender.clock = ranks_[sender.rank].next;
    }
    const uint8_t clock = input_.Byte();
    // Mostly the wanted clock, or one near it.
    if (clock >= 0xf8) {
      sender.clock = input_.Number();
    } else if (clock >= 0x80) {
      sender.clock += clock % 8 - 4;
    }
    return sender;
  }

  // Returns how the core must refuse the sender's name; nothing: it looks at the request.
  std::optional<absl::StatusCode> Fenced(const Sender& sender) {
    if (sender.rank >= ranks_.size()) return absl::StatusCode::kInvalidArgument;
    Rank& rank = ranks_[sender.rank];
    if (sender.incarnation < rank.incarnation) return absl::StatusCode::kAborted;
    rank.incarnation = sender.incarnation;
    return std::nullopt;
  }

  void Attach() {
    const Sender sender = From();
    const auto expected = Fenced(sender);
    const auto clock = core_.OnAttach(sender.rank, sender.incarnation);
    Promise(clock.status().code() == expected.value_or(absl::StatusCode::kOk),
            "only a stranger or an older life is refused");
    Promise(expected || *clock == ranks_[sender.rank].applied,
            "a new life goes on with what is applied");
  }

  // Returns how the core must refuse the clock of a contribution whose name is acceptable; nothing:
  // it accepts the clock.
  std::optional<absl::StatusCode> Early(const Sender& sender) const {
    if (!initialized_) return absl::StatusCode::kUnavailable;
    const bool ahead = rules_.mode == Consistency::kSync && sender.clock > version_ &&
                       sender.clock == ranks_[sender.rank].next;
    if (sender.clock > ranks_[sender.rank].next || ahead) {
      return absl::StatusCode::kFailedPrecondition;
    }
    return std::nullopt;
  }

  void Contribute() {
    const Sender sender = From();
    const bool wants_reply = input_.Flag();
    auto expected = Fenced(sender);
    if (!expected) expected = Early(sender);
    const RequestId request = ++requests_;
    asked_[request] = {wants_reply, false, sender.rank, sender.clock + 1};
    const bool duplicate = !expected && sender.clock < ranks_[sender.rank].next;
    Decisions decisions = core_.OnContribution(sender, request, wants_reply, ++now_);
    Promise(decisions.accepted == (!expected && !duplicate),
            "a contribution is accepted once, when it is wanted");
    if (decisions.accepted) {
      held_[request] = {sender.rank, sender.clock};
      ranks_[sender.rank].next = sender.clock + 1;
    }
    if (expected) {
      Promise(decisions.refusals.size() == 1 && decisions.refusals[0].status.code() == *expected,
              "a contribution is refused for what is wrong with it");
    }
    if (duplicate) duplicates_.insert(request);
    Take(std::move(decisions));
  }

  void Read() {
    const bool latest = input_.Flag();
    const RequestId request = ++requests_;
    if (latest) {
      asked_[request] = {true, true, 0, 0};
      return Take(core_.OnReadLatest(request, ++now_));
    }
    const Sender sender = From();
    const auto expected = Fenced(sender);
    asked_[request] = {true, false, sender.rank, sender.clock};
    Decisions decisions = core_.OnRead(sender, request, ++now_);
    const bool refused = !decisions.refusals.empty();
    if (expected) {
      Promise(refused && decisions.refusals[0].status.code() == *expected,
              "only a stranger or an older life is refused by name");
    } else if (refused) {
      Promise(absl::IsFailedPrecondition(decisions.refusals[0].status),
              "a reader of what cannot be read is told so");
      Promise(sender.clock > ranks_[sender.rank].next || rules_.mode == Consistency::kSync,
              "without sync every clock that was handed in can be read");
    }
    Take(std::move(decisions));
  }

  void Live() { Take(core_.OnSetLive(input_.Below(rules_.workers + 1), input_.Flag())); }

  void Applied() {
    ++version_;
    updated_ = true;
    for (const RequestId request : running_) {
      const Held held = held_.at(request);
      Promise(ranks_[held.rank].applied == held.clock,
              "a rank's clocks are applied once, in order");
      ranks_[held.rank].applied = held.clock + 1;
      held_.erase(request);
    }
    running_.clear();
    Take(core_.OnApplied());
  }

  void Rejected() {
    std::vector<Refusal> bad;
    const uint8_t which = input_.Byte();
    for (size_t i = 0; i < running_.size(); ++i) {
      if ((which >> i & 1) == 0 && i + 1 < running_.size()) continue;
      bad.push_back({running_[i], absl::InvalidArgumentError("not finite")});
    }
    for (const Refusal& refusal : bad) {
      const Held held = held_.at(refusal.request);
      ranks_[held.rank].next = held.clock;
      held_.erase(refusal.request);
    }
    running_.clear();
    Decisions decisions = core_.OnRejected(bad);
    for (const RequestId request : decisions.dropped) {
      Promise(held_.contains(request), "what is dropped was held");
      Promise(held_.at(request).clock > ranks_[held_.at(request).rank].next,
              "what is dropped came after what was rejected");
      held_.erase(request);
    }
    Take(std::move(decisions));
  }

  void Tick() {
    const uint64_t back = input_.Below(8);
    const uint64_t since = now_ - std::min(now_, back);
    const auto stays = [](RequestId request) { return request % 2 == 0; };
    Decisions decisions = core_.OnTick(since, now_, stays);
    for (const Refusal& reminder : decisions.reminders) {
      Promise(asked_.contains(reminder.request) && stays(reminder.request),
              "who is told what is missing has asked, was not answered, and waits on");
    }
    Take(std::move(decisions), true);
  }

  void Take(Decisions decisions, bool tick = false) {
    for (const Answer& answer : decisions.answers) TakeAnswer(answer);
    for (const Refusal& refusal : decisions.refusals) {
      Promise(asked_.erase(refusal.request) == 1, "who is refused has asked, and was not answered");
      Promise(!tick || absl::IsUnavailable(refusal.status), "who waits in vain is UNAVAILABLE");
    }
    if (decisions.update) TakeUpdate(*decisions.update);
    Promise(core_.initialized() == initialized_, "a block is made once");
    if (initialized_) {
      Promise(core_.progress().version == version_, "a version is an update");
      for (uint32_t r = 0; r < ranks_.size(); ++r) {
        Promise(core_.progress().clocks[r] == ranks_[r].applied, "clocks are what was applied");
      }
    }
  }

  void TakeAnswer(const Answer& answer) {
    const auto found = asked_.find(answer.request);
    Promise(found != asked_.end(), "who is answered has asked, and was not answered");
    const Asked asked = found->second;
    asked_.erase(found);
    if (!asked.reads) {
      Promise(answer.duplicate == duplicates_.contains(answer.request),
              "a duplicate is called one");
      Promise(ranks_[asked.rank].applied >= asked.clock, "what is acknowledged is applied");
      return;
    }
    Promise(initialized_, "a reader gets a version");
    if (answer.which == Readable::kPrevious) {
      Promise(updated_, "the version before is there if it is answered");
    }
    if (asked.latest) return;
    if (rules_.mode == Consistency::kSync) return PromiseSync(answer, asked);
    Promise(ranks_[asked.rank].applied >= asked.clock, "a reader sees what it handed in");
    if (rules_.mode == Consistency::kBounded) {
      Promise(answer.staleness <= rules_.staleness, "no reader is staler than the bound");
    }
  }

  void PromiseSync(const Answer& answer, const Asked& asked) {
    const uint64_t given = version_ - (answer.which == Readable::kPrevious ? 1 : 0);
    // An elastic exchange answers with the version before the contribution.
    if (rules_.elastic) return Promise(given == asked.clock || given + 1 == asked.clock, "sync");
    Promise(given == asked.clock, "a reader that starts clock c gets version c");
  }

  void TakeUpdate(const Update& update) {
    Promise(running_.empty(), "one update runs at a time");
    Promise(!update.contributions.empty(), "an update has contributions");
    std::set<uint32_t> ranks;
    for (const RequestId request : update.contributions) {
      Promise(held_.contains(request), "an update is of what was accepted, once");
      const Held& held = held_.at(request);
      Promise(ranks.empty() || *ranks.rbegin() < held.rank, "contributions are in rank order");
      ranks.insert(held.rank);
      if (rules_.mode == Consistency::kSync) {
        Promise(held.clock == version_ && update.clock == version_, "sync applies clock c at c");
      }
    }
    const size_t wanted = rules_.mode == Consistency::kSync ? rules_.workers : 1;
    Promise(ranks.size() == wanted, "an update is of one, or in sync mode of all");
    running_ = update.contributions;
  }

  FuzzInput& input_;
  const ConsistencyRules rules_;
  BlockCore core_;
  std::vector<Rank> ranks_;
  bool initialized_ = false;
  bool updated_ = false;
  uint64_t version_ = 0;
  uint64_t now_ = 0;
  RequestId requests_ = 0;
  std::map<RequestId, Asked> asked_;
  std::map<RequestId, Held> held_;
  RequestIds running_;
  // Requests that repeat a contribution that was taken.
  std::set<RequestId> duplicates_;
};

}  // namespace
FUZZ_TARGET(block_core) { World(input).Run(); }

}  // namespace leeway::block_core
