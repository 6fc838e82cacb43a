// A server's promises, which are checked at each of its decisions.
#include <algorithm>
#include <bit>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/sim/server.h"

namespace leeway::sim {

void SimServer::CheckAccepted(Context& context, const Block& block, const Message& request) {
  if (request.generation != place_.generation) {
    context.Violate("nobody of an older generation is heard", [&] {
      return absl::StrCat("generation ", place_.generation, ": ", Describe(request));
    });
  }
  if (request.incarnation >= block.newest[request.rank]) return;
  context.Violate("nobody fenced is heard", [&] {
    return absl::StrCat("block ", block.number, " took clock ", request.clock, " of worker ",
                        request.rank, " incarnation ", request.incarnation, ", but knows ",
                        block.newest[request.rank]);
  });
}

void SimServer::CheckCut(Context& context, uint64_t clock) const {
  for (const Block& block : blocks_) {
    const auto held = block.cuts.find(clock);
    if (held == block.cuts.end()) continue;
    uint64_t sum = 0;
    bool right = true;
    for (uint32_t r = 0; r < context.shape.workers; ++r) {
      const uint64_t clocks = held->second.clocks[r];
      const auto count = static_cast<uint64_t>(std::popcount(clocks));
      sum += count;
      right &= clocks == Below(context.shape.sync() ? clock : count);
    }
    if (!context.shape.sync()) right &= sum / context.shape.workers == clock;
    if (context.shape.sets()) {
      right = held->second.number == clock &&
              context.sets.Is(place_.generation, block.number, held->second);
    }
    if (right) continue;
    context.Violate("a cut is one state of the job", [&] {
      return absl::StrCat("block ", block.number, ", cut at clock ", clock, ", held at version ",
                          held->second.number);
    });
  }
}

void SimServer::CheckNamesMissing(Context& context, const Block& block, const Reader& reader,
                                  const absl::Status& status) {
  if (reader.message.kind == Kind::kLatest) return;
  const bool silent = context.bug == Bug::kSilentRefusal;
  const std::string text = silent ? "try again" : std::string(status.message());
  if (context.shape.sets()) {
    const bool told = absl::StrContains(text, "worker ") ||
                      absl::StrContains(text, "coordinator") ||
                      absl::StrContains(text, "an update runs");
    if (told) return;
    return context.Violate("who waits is told for whom", [&] { return text; });
  }
  const bool sync = context.shape.sync();
  const bool push = reader.message.kind == Kind::kPush;
  if (context.shape.mode == Consistency::kAsync || (!sync && push)) {
    if (absl::StrContains(text, "an update runs")) return;
    return context.Violate("who waits is told for whom", [&] { return text; });
  }
  const bool pushes = push || reader.message.kind == Kind::kPushPull;
  const uint64_t clock = reader.message.clock + (pushes ? 1 : 0);
  for (uint32_t r = 0; r < context.shape.workers; ++r) {
    auto stands = static_cast<uint64_t>(std::popcount(block.current.clocks[r]));
    for (const Contribution& kept : block.kept) stands += sync && kept.rank == r ? 1 : 0;
    const bool missing =
        (sync || live_[r]) && stands + (sync ? 0 : context.shape.staleness) < clock;
    const bool named = absl::StrContains(text, absl::StrCat("worker ", r, " (at"));
    if (missing == named) continue;
    context.Violate("who waits is told for whom", [&] {
      return absl::StrCat("worker ", r, missing ? " is missing" : " is not missing", ": \"", text,
                          "\"");
    });
  }
}

void SimServer::CheckUpdate(Context& context, const Block& block, const Update& update) {
  if (!context.shape.sync()) return;
  const uint64_t everybody = Below(context.shape.workers);
  const auto set = context.shape.sets() ? context.sets.SetOf(place_.generation, update.clock)
                                        : std::optional(everybody);
  uint64_t ranks = 0;
  bool right = update.clock == block.current.number;
  for (const RequestId request : update.contributions) {
    const auto kept = std::find_if(block.kept.begin(), block.kept.end(),
                                   [&](const Contribution& c) { return c.request == request; });
    right &= kept != block.kept.end() && kept->clock == update.clock && ranks >> kept->rank == 0;
    if (right) ranks |= uint64_t{1} << kept->rank;
  }
  if (right && set == ranks) return;
  context.Violate("sync: a clock is the same whole set everywhere, in rank order", [&] {
    return absl::StrCat("block ", block.number, ", clock ", update.clock, ": ",
                        update.contributions.size(), " contributions");
  });
}

void SimServer::CheckProgress(Context& context, const Block& block) const {
  const BlockProgress& progress = block.core.progress();
  bool right = progress.version == block.current.number;
  for (uint32_t r = 0; r < context.shape.workers; ++r) {
    right &= context.shape.sets() ? progress.clocks[r] == progress.version
                                  : block.current.clocks[r] == Below(progress.clocks[r]);
  }
  if (context.shape.sets() && block.core.initialized()) {
    right &= context.sets.Is(place_.generation, block.number, block.current);
  }
  if (right) return;
  context.Violate("what is applied is what was accepted, and never falls", [&] {
    return absl::StrCat("block ", block.number, " should be at version ", progress.version,
                        ", is at ", block.current.number);
  });
}

void SimServer::CheckRead(Context& context, const Block& block, const Reader& reader,
                          const Answer& answer, const Version& shown) {
  const Kind kind = reader.message.kind;
  if (kind != Kind::kPull && kind != Kind::kPushPull) return;
  if (shown.values == kBeingWritten) {
    context.Violate("no reader sees a block that is being written",
                    [&] { return absl::StrCat("block ", block.number); });
  }
  Sender sender = SenderOf(reader.message);
  if (kind == Kind::kPushPull) ++sender.clock;
  if (!context.shape.sync()) return CheckFreshness(context, block, sender, answer);
  if (context.shape.elastic) return;
  bool right = shown.number == sender.clock;
  for (uint32_t r = 0; !context.shape.sets() && r < context.shape.workers; ++r) {
    right &= shown.clocks[r] == Below(sender.clock);
  }
  if (right) return;
  context.Violate("sync: a reader of clock c sees exactly clocks < c, whole", [&] {
    return absl::StrCat("block ", block.number, " to worker ", sender.rank, " for clock ",
                        sender.clock, ": version ", shown.number);
  });
}

void SimServer::CheckFreshness(Context& context, const Block& block, const Sender& reader,
                               const Answer& answer) {
  uint64_t slowest = UINT64_MAX;
  uint64_t fastest = 0;
  for (uint32_t r = 0; r < context.shape.workers; ++r) {
    const auto clock = static_cast<uint64_t>(std::popcount(block.current.clocks[r]));
    if (live_[r]) slowest = std::min(slowest, clock);
    fastest = std::max(fastest, clock);
  }
  if (slowest == UINT64_MAX) slowest = fastest;
  const uint64_t staleness = reader.clock > slowest ? reader.clock - slowest : 0;
  const bool fresh =
      context.shape.mode == Consistency::kAsync || staleness <= context.shape.staleness;
  if (fresh && answer.staleness == staleness) return;
  context.Violate("staleness <= s at every read, and as reported", [&] {
    return absl::StrCat("block ", block.number, " to worker ", reader.rank, " for clock ",
                        reader.clock, ": staleness ", staleness, ", reported ", answer.staleness);
  });
}

void SimServer::CheckAtEnd(Context& context) const {
  const Ledger& ledger = context.ledger;
  // The newest owner has everything that any owner has acknowledged.
  const bool newest =
      ledger.generation == place_.generation && place_.epoch >= ledger.epochs[index_];
  for (const Block& block : blocks_) {
    CheckProgress(context, block);
    for (uint32_t r = 0; r < context.shape.workers; ++r) {
      const uint64_t answered =
          block.acknowledged[r] | (newest ? ledger.acknowledged[block.number][r] : 0);
      CheckApplied(context, block, r, answered);
    }
  }
}

void SimServer::CheckApplied(Context& context, const Block& block, uint32_t rank,
                             uint64_t acknowledged) {
  const uint64_t applied = block.current.clocks[rank];
  if ((acknowledged & ~applied) == 0) return;
  context.Violate("what was acknowledged is applied", [&] {
    return absl::StrCat("block ", block.number, ", worker ", rank, ": acknowledged ",
                        absl::Hex(acknowledged), ", applied ", absl::Hex(applied));
  });
}

}  // namespace leeway::sim
