// What a worker may read, and at which clock it stands.
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/sim/values.h"
#include "tests/sim/worker.h"

namespace leeway::sim {

bool SimWorker::IsAllowed(const Context& context, const Call& call, const Message& reply) const {
  const Version& shown = reply.version;
  const bool pushed = call.kind == Kind::kPushPull;
  const uint64_t starts = call.clock + (pushed ? 1 : 0);
  const bool before = pushed && context.shape.elastic;
  if (context.shape.sets()) {
    return shown.number == starts - (before ? 1 : 0) &&
           context.sets.Is(generation_, call.block, shown);
  }
  if (context.shape.sync()) {
    const uint64_t want = starts - (before ? 1 : 0);
    for (uint32_t r = 0; r < context.shape.workers; ++r) {
      if (shown.clocks[r] != Below(want)) return false;
    }
    return shown.number == want && shown.values == ExpectedValues(context.shape, call.block, want);
  }
  for (uint32_t r = 0; r < context.shape.workers; ++r) {
    if ((read_[call.block].clocks[r] & ~shown.clocks[r]) != 0) return false;
  }
  const uint64_t own = shown.clocks[rank_];
  if (before && !reply.duplicate) return own == Below(call.clock);
  return (Below(starts) & ~own) == 0 && shown.number >= read_[call.block].number;
}

void SimWorker::CheckSeen(Context& context, const Call& call, const Message& reply) {
  if (IsAllowed(context, call, reply)) return;
  context.Violate("a worker sees what its clock promises, and never less than before", [&] {
    return absl::StrCat("worker ", rank_, " incarnation ", incarnation_, ", ", KindName(call.kind),
                        " clock ", call.clock, ": ", Describe(reply));
  });
}

// Checks that a contribution that was reported as dropped is in no version, and that every other
// one is.
void SimWorker::CheckCounted(Context& context) {
  if (!given_up_) return;
  const uint64_t clock = *std::exchange(given_up_, std::nullopt);
  const auto set = context.sets.SetOf(generation_, clock);
  // After a change of owner a shard does not know what counted before, nor what is not applied yet.
  if (!set || context.shape.moves() || clock_ <= clock) return;
  const bool counts = counted_ > clock;
  if (counts == ((*set >> rank_ & 1) != 0)) return;
  context.Violate("what comes too late is counted as dropped", [&] {
    return absl::StrCat("worker ", rank_, ", clock ", clock, ", goes on at ", clock_, ", counted ",
                        counted_);
  });
}

uint64_t SimWorker::Hash() const {
  uint64_t hash = Mix(Mix(static_cast<uint64_t>(phase_), static_cast<uint64_t>(end_)),
                      Mix(incarnation_, clock_));
  hash = Mix(hash, life_);
  for (const Call& call : calls_) {
    if (!call.open) continue;
    hash = Mix(hash, Mix(Mix(static_cast<uint64_t>(call.kind), call.block),
                         Mix(call.clock, call.attempt)));
  }
  for (uint32_t b = 0; b < kBlocksMax; ++b) {
    hash = Mix(hash, Mix(read_[b].values, reading_[b].values));
  }
  return hash;
}

std::string SimWorker::Where() const {
  static constexpr const char* kPhases[] = {"register", "attach", "initialize", "read",
                                            "push",     "pull",   "exchange",   "latest",
                                            "stop at",  "state",  "leave"};
  return absl::StrCat("worker ", rank_, " life ", life_, " incarnation ", incarnation_, " in ",
                      kPhases[static_cast<int>(phase_)], ", clock ", clock_);
}

}  // namespace leeway::sim
