// The updates of a simulated shard: Shard::Run and Shard::Reject do the same in the product.
#include <algorithm>
#include <utility>

#include "tests/sim/server.h"

namespace leeway::sim {

void SimServer::BeginUpdate(Context& context, Block& block, const Update& update) {
  block.running = update;
  if (context.bug == Bug::kArrivalOrder) {
    std::sort(block.running->contributions.begin(), block.running->contributions.end());
  }
  if (context.bug == Bug::kOtherSet && index_ == 0 && context.shape.sync() &&
      update.contributions.size() > 1 && context.Chance(16)) {
    block.running->contributions.pop_back();
  }
  CheckUpdate(context, block, *block.running);
  if (context.shape.elastic && !context.shape.sync()) {
    for (Reader& reader : block.readers) {
      const bool wants_reply = reader.message.kind == Kind::kPushPull;
      const bool its_own = reader.request == update.contributions.front();
      if (wants_reply && its_own) reader.before = block.current;
    }
  }
  if (context.bug == Bug::kTornRead) block.current.values = kBeingWritten;
  Message timer;
  timer.kind = Kind::kApplied;
  timer.block = static_cast<uint8_t>(block.number);
  timer.life = place_.instance;
  timer.boot = place_.boot;
  const Micros takes =
      context.by_choice ? 0 : 40 + static_cast<Micros>(context.draws.NextU32() % 128);
  context.After(node_, takes, timer);
}

void SimServer::Apply(Context& context, Block& block, const Contribution& contribution) {
  uint64_t& clocks = block.current.clocks[contribution.rank];
  // With committed sets some clocks are left out.
  const bool right = context.shape.sets() ? clocks >> contribution.clock == 0
                                          : clocks == Below(contribution.clock);
  if (!right) {
    context.Violate("each contribution is applied once, in order", [&] {
      return absl::StrCat("block ", block.number, ": clock ", contribution.clock, " of worker ",
                          contribution.rank, " onto ", absl::Hex(clocks));
    });
  }
  clocks |= uint64_t{1} << contribution.clock;
  // Outside of sync mode the order means nothing.
  const uint64_t value = contribution.value;
  block.current.values =
      context.shape.sync() ? Mix(block.current.values, value) : block.current.values + 2 * value;
}

void SimServer::OnApplied(Context& context, const Message& timer) {
  if (timer.life != place_.instance || timer.boot != place_.boot) return;
  Block& block = BlockOf(context, timer.block);
  if (!block.running) return;
  const Update update = *std::exchange(block.running, std::nullopt);
  if (context.faults.reject > 0 && !context.healed && context.Chance(context.faults.reject)) {
    return Reject(context, block, update);
  }
  block.previous = block.current;
  for (const RequestId request : update.contributions) {
    const auto kept = std::find_if(block.kept.begin(), block.kept.end(),
                                   [&](const Contribution& c) { return c.request == request; });
    if (kept == block.kept.end()) continue;
    const Contribution contribution = *kept;
    block.kept.erase(kept);
    if (context.bug == Bug::kLoseAccepted && context.Chance(8)) continue;
    Apply(context, block, contribution);
    if (context.bug == Bug::kApplyTwice && context.Chance(8)) Apply(context, block, contribution);
  }
  ++block.current.number;
  if (context.bug == Bug::kFallBack && context.Chance(8)) block.current = block.previous;
  const Decisions decisions = block.core.OnApplied();
  CheckProgress(context, block);
  Act(context, block, decisions);
}

// One of the contributions turns out not to be finite.
void SimServer::Reject(Context& context, Block& block, const Update& update) {
  ++context.counts.rejected;
  const RequestId bad = update.contributions[context.draws.NextU32() % update.contributions.size()];
  TellRefused(context, block, bad);
  const Decisions decisions =
      block.core.OnRejected({{bad, absl::InvalidArgumentError("not finite")}});
  std::erase_if(block.kept, [&](const Contribution& kept) { return kept.request == bad; });
  CheckProgress(context, block);
  Act(context, block, decisions);
}

}  // namespace leeway::sim
