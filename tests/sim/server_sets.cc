// Committed sets on a server, around the real HeldBook: server/node/quorum_reporter.cc and
// Shard::CommitSet do the same in the product.
#include <algorithm>
#include <vector>

#include "tests/sim/server.h"

namespace leeway::sim {

void SimServer::OnCommitted(Context& context, uint64_t clock, uint64_t ranks) {
  if (!held_) return;
  held_->OnCommitted(clock);
  if (context.bug == Bug::kSetDiffers && index_ == 0 && context.Chance(32)) ranks &= ranks - 1;
  std::vector<uint32_t> set;
  for (uint32_t r = 0; r < context.shape.workers; ++r) {
    if (ranks >> r & 1) set.push_back(r);
  }
  for (Block& block : blocks_) Act(context, block, block.core.OnCommitted(clock, set));
  TellHeld(context);
}

// Sends one report at a time.
void SimServer::TellHeld(Context& context) {
  if (!held_ || telling_ > 0) return;
  const auto held = held_->Take();
  if (!held) return;
  Message message;
  message.kind = Kind::kHeld;
  message.from = node_;
  message.to = kCoordinator;
  message.block = static_cast<uint8_t>(index_);
  message.life = place_.instance;
  message.boot = place_.boot;
  message.generation = place_.generation;
  message.clock = held->clock;
  message.stop_at = place_.epoch;
  message.flag = held->again;
  for (const uint32_t rank : held->ranks) message.value |= uint64_t{1} << rank;
  for (const uint32_t rank : held->refused) message.value |= uint64_t{1} << (kRefusedShift + rank);
  message.sequence = telling_ = ++context.instances;
  told_ = context.LocalNow(node_);
  context.counts.sets_again += held->again ? 1 : 0;
  context.Send(message);
}

void SimServer::TellRefused(Context& context, const Block& block, RequestId request) {
  if (!held_) return;
  for (const Contribution& kept : block.kept) {
    if (kept.request == request) held_->OnRefused(kept.rank, kept.clock);
  }
  TellHeld(context);
}

void SimServer::OnHeldHeard(Context& context, const Message& reply) {
  if (reply.life != place_.instance || reply.sequence != telling_) return;
  telling_ = 0;
  // The coordinator has begun another generation.
  if (reply.code == absl::StatusCode::kFailedPrecondition) return held_.reset();
  if (reply.code != absl::StatusCode::kOk) held_->TellAgain();
  TellHeld(context);
}

void SimServer::TickHeld(Context& context) {
  const Micros since = context.LocalNow(node_) - told_;
  if (telling_ > 0 && since < kAttemptLimit) return;
  if (telling_ == 0 && since < kHeldAgain) return;
  telling_ = 0;
  told_ = context.LocalNow(node_);
  if (context.bug != Bug::kHeldUnsaid) held_->TellAgain();
  TellHeld(context);
}

// Drops contributions that no update will have.
void SimServer::Drop(Context& context, Block& block, const RequestIds& dropped) {
  context.counts.dropped += dropped.size();
  std::erase_if(block.kept, [&](const Contribution& kept) {
    const bool gone = std::count(dropped.begin(), dropped.end(), kept.request) > 0;
    if (gone && context.bug == Bug::kDroppedApplied && context.Chance(16)) {
      Apply(context, block, kept);
    }
    return gone;
  });
}

}  // namespace leeway::sim
