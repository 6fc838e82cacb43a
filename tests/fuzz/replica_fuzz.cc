// Reads bytes as messages to a server that holds another server's replica: true states, old ones
// and lies. A model decides what the replica must hold. Its content then continues as a block of
// its own. Other inputs are the life of the owner's gate.
#include <map>
#include <optional>
#include <vector>

#include "server/core/block_core.h"
#include "server/core/replica_gate.h"
#include "server/replica/replica_store.h"
#include "tests/fuzz/fuzz_input.h"

namespace leeway::replica {
namespace {

constexpr size_t kInputsMax = 200;
constexpr uint64_t kSinceEpoch = 3;
constexpr uint32_t kWorkers = 2;

ReplicaStore::Options OptionsOf(FuzzInput& input) {
  const uint32_t shards = 1 + input.Below(3);
  const BlockLayout layout = BlockLayout::FromWire(1 + input.Below(60), shards, 16).value();
  return {.layout = layout,
          .shard = input.Below(shards),
          .since_epoch = kSinceEpoch,
          .slots = input.Below(3),
          .keep_previous = input.Flag(),
          .memory = nullptr};
}

// Each vector of a state is filled with one number, its name.
using Name = float;
struct State {
  uint64_t version = 0;
  Name weights = 0;
  std::vector<Name> slots;
  std::optional<Name> shadow;
  std::optional<Name> previous;
};

class World {
 public:
  explicit World(FuzzInput& input) : input_(input), options_(OptionsOf(input)), store_(options_) {}

  void Run() {
    for (size_t i = 0; i < kInputsMax && !input_.empty(); ++i) Send();
    TakeOver();
    // The server owns the shard now.
    Send();
  }

 private:
  struct Message {
    v1::ExchangeHeader header;
    v1::ReplicatedBlock replicated;
    State state;
    std::vector<float> values;
    bool whole = true;
    bool stands = true;
  };

  bool IsMine(const Message& message) const {
    const uint32_t block = message.header.block();
    return block < options_.layout.blocks() && options_.layout.ShardOf(block) == options_.shard &&
           message.replicated.since_epoch() == kSinceEpoch;
  }

  void AddVector(Message& message, Name name) {
    const uint32_t block = message.header.block();
    const size_t count = block < options_.layout.blocks() ? options_.layout.Range(block).count : 3;
    message.values.insert(message.values.end(), count, name);
  }

  Message MessageOf() {
    Message message;
    message.header.set_block(input_.Below(options_.layout.blocks() + 1));
    const uint8_t lie = input_.Byte();
    message.replicated.set_since_epoch(kSinceEpoch + (lie == 1) - (lie == 2));
    const auto held = held_.find(message.header.block());
    const uint64_t version = held == held_.end() ? 0 : held->second.version;
    message.state.version = lie == 3 ? input_.Number() : version + input_.Below(4);
    if (lie == 4 && version > 0) message.state.version = version - 1;
    message.replicated.set_version(message.state.version);
    for (uint32_t rank = input_.Below(kWorkers + 2); rank > 0; --rank) {
      message.replicated.add_clocks(input_.Number());
      message.replicated.add_counted(input_.Number());
    }
    AddVector(message, message.state.weights = ++names_);
    for (size_t slot = 0; slot < options_.slots; ++slot) {
      AddVector(message, message.state.slots.emplace_back(++names_));
    }
    if (input_.Flag()) AddVector(message, *(message.state.shadow = ++names_));
    message.replicated.set_has_previous(input_.Flag());
    if (message.replicated.has_previous()) AddVector(message, *(message.state.previous = ++names_));
    // In a block of one value, a value more or less would be a different valid state.
    const bool cut = options_.layout.total() % 16 != 1;
    if (cut && lie == 5) message.values.resize(message.values.size() + 1);
    if (cut && lie == 6) message.values.pop_back();
    message.whole = !cut || (lie != 5 && lie != 6);
    message.stands = lie != 7;
    return message;
  }

  // Splits the payload into pieces that end anywhere.
  FloatPayload PayloadOf(const Message& message) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(message.values.data());
    size_t left = message.values.size() * sizeof(float);
    FloatPayload::PieceList pieces;
    while (left > 0) {
      const size_t taken = std::min<size_t>(left, 1 + input_.Byte() * 4u);
      pieces.emplace_back(bytes, taken);
      bytes += taken;
      left -= taken;
    }
    return {nullptr, pieces};
  }

  absl::StatusCode Expected(const Message& message) const {
    if (!IsMine(message)) return absl::StatusCode::kFailedPrecondition;
    if (!message.whole) return absl::StatusCode::kInvalidArgument;
    if (!message.stands) return absl::StatusCode::kUnavailable;
    const auto held = held_.find(message.header.block());
    const bool older = held != held_.end() && message.state.version < held->second.version;
    return over_ || older ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kOk;
  }

  void Send() {
    const Message message = MessageOf();
    const FloatPayload payload = PayloadOf(message);
    const absl::StatusCode expected = Expected(message);
    const absl::Status status = store_.Take(message.header, message.replicated, payload,
                                            [&message] { return message.stands; });
    Promise(status.code() == expected, "a state is taken, or refused for what is wrong with it");
    if (status.ok()) Hold(message);
  }

  void Hold(const Message& message) {
    const auto before = held_.find(message.header.block());
    State state = message.state;
    if (!state.previous && before != held_.end()) {
      const State& old = before->second;
      if (options_.keep_previous && state.version == old.version + 1) {
        state.previous = old.shadow.value_or(old.weights);
      } else if (!options_.keep_previous || state.version == old.version) {
        state.previous = old.previous;
      }
    }
    held_[message.header.block()] = state;
  }

  void PromiseIs(const SharedFloats& values, const std::optional<Name>& name) {
    Promise(static_cast<bool>(values) == name.has_value(), "what was sent is held, and no more");
    if (!name) return;
    for (const float value : values.span()) Promise(value == *name, "values are the newest sent");
  }

  void TakeOver() {
    auto blocks = store_.TakeOver();
    over_ = true;
    const bool whole = held_.size() == options_.layout.BlocksOn(options_.shard);
    Promise(blocks.ok() == whole, "a shard is taken over whole");
    if (!blocks.ok()) {
      return Promise(absl::IsFailedPrecondition(blocks.status()), "it says which block never came");
    }
    for (const ReplicaStore::Block& block : *blocks) {
      const State& state = held_.at(block.block);
      Promise(block.progress.version == state.version, "a version is the newest sent");
      PromiseIs(block.values.weights, state.weights);
      PromiseIs(block.values.shadow, state.shadow);
      PromiseIs(block.previous, state.previous);
      Promise(block.values.slots.size() == options_.slots, "as many slots as the rule has");
      for (size_t i = 0; i < options_.slots; ++i) PromiseIs(block.values.slots[i], state.slots[i]);
      GoOn(block);
    }
  }

  // Whatever the replica was sent, its block answers every request once.
  void GoOn(const ReplicaStore::Block& taken) {
    ConsistencyRules rules;
    rules.mode = static_cast<Consistency>(input_.Below(3));
    rules.workers = kWorkers;
    rules.cut_every = input_.Below(3);
    rules.committed_sets = rules.mode == Consistency::kSync && input_.Flag();
    BlockCore core(taken.block, rules);
    std::map<RequestId, int> answers;
    const auto count = [&answers](const Decisions& decisions) {
      for (const Answer& answer : decisions.answers) ++answers[answer.request];
      for (const Refusal& refusal : decisions.refusals) ++answers[refusal.request];
    };
    count(core.OnInitialized(taken.progress, static_cast<bool>(taken.previous)));
    RequestId request = 0;
    for (uint32_t rank = 0; rank < kWorkers; ++rank) {
      const auto clock = core.OnAttach(rank, 1);
      PromiseOk(clock.status(), "a worker attaches to who has taken over");
      count(core.OnContribution({rank, 1, *clock}, ++request, true, 1));
    }
    count(core.OnReadLatest(++request, 1));
    count(core.OnTick(2));
    Promise(answers.size() == request, "whoever has asked is answered");
    for (const auto& [id, times] : answers) Promise(times == 1, "who has asked is answered once");
  }

  FuzzInput& input_;
  const ReplicaStore::Options options_;
  ReplicaStore store_;
  bool over_ = false;
  float names_ = 0;
  // By block: the state that the replica must hold.
  std::map<uint32_t, State> held_;
};

// The owner's side: an answer that has left is with the replica.
class GateWorld {
 public:
  explicit GateWorld(FuzzInput& input) : input_(input) {}

  void Run() {
    for (size_t i = 0; i < kInputsMax && !input_.empty(); ++i) Step();
  }

 private:
  void Step() {
    switch (input_.Below(8)) {
      case 0:
        gate_.Attach();
        return Begin(true);
      case 1:
        gate_.Detach();
        return Begin(false);
      case 2:
      case 3:
        ++version_;
        break;
      case 4:
      case 5:
        Send();
        break;
      default:
        Arrive();
    }
    Look();
  }

  void Begin(bool attached) {
    attached_ = attached;
    there_.reset();
    under_way_.reset();
    Promise(!gate_.synced(), "a replica that has nothing is not synced");
    Look();
  }

  void Send() {
    const bool wanted = attached_ && !under_way_ && (!there_ || version_ > *there_);
    Promise(gate_.TakeSend(version_) == wanted, "what the replica lacks is sent, one at a time");
    if (wanted) under_way_ = version_;
  }

  void Arrive() {
    if (!under_way_) return;
    const bool arrived = input_.Flag();
    gate_.OnSent(arrived, version_);
    if (arrived) {
      if (!there_) first_ = version_;
      there_ = under_way_;
    }
    under_way_.reset();
  }

  void Look() {
    for (uint64_t version = version_ > 3 ? version_ - 3 : 0; version <= version_ + 1; ++version) {
      Promise(gate_.IsOpen(version) == (!there_ || version <= *there_),
              "an answer leaves when the replica has what it says");
      Promise(gate_.NeedsPrevious(version) == (!there_ || version > *there_ + 1),
              "the version before is sent where the replica lacks it");
    }
    Promise(gate_.synced() == (there_ && *there_ >= first_), "synced: what left before is there");
  }

  FuzzInput& input_;
  ReplicaGate gate_;
  bool attached_ = false;
  uint64_t version_ = 0;
  // The newest version that the replica has; at first, the owner's version when the replica got its
  // first state.
  std::optional<uint64_t> there_;
  uint64_t first_ = 0;
  std::optional<uint64_t> under_way_;
};

}  // namespace
FUZZ_TARGET(replica) {
  if (input.Byte() % 4 == 0) {
    GateWorld(input).Run();
  } else {
    World(input).Run();
  }
}

}  // namespace leeway::replica
