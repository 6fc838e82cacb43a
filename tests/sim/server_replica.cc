// What a shard does for its replica (server/shard/shard_replica.cc) and what it promises, around
// the real ReplicaGate.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/sim/server.h"

namespace leeway::sim {

void SimServer::SetReplica(Context& context, std::optional<NodeId> replica, uint64_t since_epoch) {
  if (replica && replica_ && since_epoch_ == since_epoch) return;
  const bool switched = since_epoch_ > 0;
  replica_ = replica;
  since_epoch_ = since_epoch;
  stream_ = ++context.instances;
  const bool forget = context.bug == Bug::kGateForgotten && switched;
  for (Block& block : blocks_) {
    replica && !forget ? block.gate.Attach() : block.gate.Detach();
    block.replicated.reset();
    LeaveOpen(context, block);
    Replicate(context, block);
  }
}

uint64_t SimServer::synced_since(const Context& context) const {
  if (!replica_) return 0;
  const bool synced = std::all_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return block.gate.synced() || context.bug == Bug::kUnsyncedTakeOver ||
           context.bug == Bug::kGateForgotten;
  });
  return synced ? since_epoch_ : 0;
}

void SimServer::Replicate(Context& context, Block& block) {
  const bool due =
      replica_ && block.core.initialized() && block.gate.TakeSend(block.core.progress().version);
  if (!due) return;
  Message message;
  message.kind = Kind::kReplicate;
  message.from = node_;
  message.to = *replica_;
  message.block = static_cast<uint8_t>(block.number);
  message.sequence = stream_;
  message.life = place_.instance;
  message.boot = place_.boot;
  message.generation = place_.generation;
  message.stop_at = since_epoch_;
  message.version = block.current;
  // A new replica also gets the previous version, if there is one.
  const bool first = block.current.number == block.first_version;
  if (context.shape.sync() && block.gate.NeedsPrevious(block.current.number) && !first) {
    context.versions_before.push_back(block.previous);
    message.value = context.versions_before.size();
  }
  // The version that is there, and not the one that is being written.
  context.SendInOrder(message);
}

void SimServer::OnReplicated(Context& context, const Message& message) {
  if (message.life != place_.instance || message.sequence != stream_) return;
  Block& block = BlockOf(context, message.block);
  const bool arrived = message.code == absl::StatusCode::kOk;
  block.gate.OnSent(arrived, block.core.progress().version);
  if (arrived) {
    const std::vector<uint64_t> clocks = ProgressOf(context, message.version).clocks;
    const std::vector<uint64_t>& left = block.core.progress().clocks;
    if (!block.replicated) std::copy(left.begin(), left.end(), block.replicated.emplace().begin());
    for (size_t rank = 0; rank < clocks.size(); ++rank) {
      (*block.replicated)[rank] = std::max((*block.replicated)[rank], clocks[rank]);
    }
  }
  LeaveOpen(context, block);
  // If the stream broke, the tick tries again, or the coordinator names another replica.
  if (arrived) Replicate(context, block);
}

void SimServer::OnBroken(Context& context, const Message& message) {
  if (message.life != place_.instance || message.sequence != stream_) return;
  ++context.counts.streams_broken;
  stream_ = ++context.instances;
  for (Block& block : blocks_) block.gate.OnSent(false, block.core.progress().version);
}

void SimServer::Leave(Context& context, Block& block, const Message& reply) {
  const uint64_t version = block.core.progress().version;
  const bool open = block.gate.IsOpen(version) || context.bug == Bug::kUngated;
  if (open) return LeaveNow(context, block, reply);
  ++context.counts.held_back;
  block.gated.push_back({version, std::nullopt, reply});
}

void SimServer::LeaveOpen(Context& context, Block& block) {
  while (!block.gated.empty() && block.gate.IsOpen(block.gated.front().version)) {
    const Message reply = block.gated.front().reply;
    block.gated.pop_front();
    LeaveNow(context, block, reply, true);
  }
}

void SimServer::GiveUpGated(Context& context, Block& block, Micros since, bool closed) {
  std::erase_if(block.gated, [&](Gated& gated) {
    if (!gated.seen) gated.seen = since;
    if (!closed && since < *gated.seen + kWaitLimit) return false;
    gated.reply.code = absl::StatusCode::kUnavailable;
    context.Send(gated.reply);
    return true;
  });
}

// Sends an answer, which must stay true from now on.
void SimServer::LeaveNow(Context& context, const Block& block, const Message& reply, bool held) {
  if (context.LocalNow(node_) >= lease_ && context.bug != Bug::kLeaseIgnored) {
    ++context.counts.leases_over;
    Message refusal = reply;
    refusal.code = absl::StatusCode::kUnavailable;
    refusal.flag = false;
    return context.Send(refusal);
  }
  context.Send(reply);
  if (!context.shape.moves()) return;
  Ledger& ledger = context.ledger;
  if (place_.generation < ledger.generation) return;
  if (place_.generation > ledger.generation) ledger = Ledger{place_.generation, {}, {}, {}, {}};
  uint64_t& epoch = ledger.epochs[index_];
  // The answer was held back until the replica had the version, and the replica has taken over
  // since: the answer is late, but true.
  const Version& taken = ledger.taken[block.number];
  const bool known = held && reply.version.number <= taken.number;
  if (place_.epoch < epoch && !known) {
    context.Violate("who has a successor that has answered answers nobody", [&] {
      return absl::StrCat("server ", node_ - kServer0, ", owner of shard ", index_, " since epoch ",
                          place_.epoch, ", not ", epoch, ": ", Describe(reply));
    });
  }
  epoch = std::max(epoch, place_.epoch);
  // An attaching worker, and one that brings the first version, get no version.
  if (reply.answers == Kind::kAttach || reply.answers == Kind::kInitialize) return;
  const bool pushes = reply.answers == Kind::kPush || reply.answers == Kind::kPushPull;
  if (pushes) ledger.acknowledged[block.number][reply.rank] |= uint64_t{1} << reply.clock;
  uint64_t& version = ledger.versions[block.number];
  version = std::max(version, reply.version.number);
}

void SimServer::TakeOver(Context& context, size_t place, const Version& current,
                         const std::optional<Version>& previous) {
  Block& block = blocks_[place];
  CheckTakenOver(context, block, current);
  if (context.ledger.generation == place_.generation) context.ledger.taken[block.number] = current;
  block.current = current;
  block.previous = previous.value_or(Version());
  // Where a previous version came with it, no version counts as the first.
  block.first_version = previous ? UINT64_MAX : current.number;
  block.acknowledged = current.clocks;
  if (context.shape.cut_every > 0) {
    const uint64_t clock =
        context.shape.sync() ? current.number : current.number / context.shape.workers;
    block.last_cut = clock / context.shape.cut_every * context.shape.cut_every;
  }
  if (held_) held_->OnLoaded(current.number);
  Act(context, block, block.core.OnInitialized(ProgressOf(context, current), previous.has_value()));
}

void SimServer::CheckTakenOver(Context& context, const Block& block, const Version& current) const {
  const Ledger& ledger = context.ledger;
  if (ledger.generation != place_.generation) return;
  bool right = current.number >= ledger.versions[block.number];
  for (uint32_t r = 0; r < context.shape.workers; ++r) {
    right &= (ledger.acknowledged[block.number][r] & ~current.clocks[r]) == 0;
  }
  if (right) return;
  context.Violate("what was answered survives a server, without going back", [&] {
    return absl::StrCat("block ", block.number, ": version ", ledger.versions[block.number],
                        " was seen, its replica is at ", current.number);
  });
}

}  // namespace leeway::sim
