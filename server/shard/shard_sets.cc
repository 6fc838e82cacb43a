// Handles committed sets: the coordinator decides which contributions make up a clock.
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/shard/shard.h"

namespace leeway {
namespace {

// The maximum number of clocks by which a set may be ahead of a block. No clock begins before the
// previous clock is complete, so no set is more than a few clocks ahead.
constexpr uint64_t kSetsAheadMax = 16;

}  // namespace

void Shard::InTurn(uint64_t parts, const std::function<void(uint64_t)>& run) {
  for (uint64_t part = 0; part < parts; ++part) run(part);
}

absl::Status Shard::CheckSet(uint64_t clock, const std::vector<uint32_t>& ranks) const {
  const bool rising =
      std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<uint32_t>()) == ranks.end();
  if (slots_.empty()) return absl::OkStatus();
  if (!contributions_ || ranks.empty() || ranks.back() >= scale_.workers() || !rising) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the contributors of clock ", clock, " must be ranks from 0 to ", scale_.workers() - 1,
        " in rising order, and the job must allow clocks without some workers "
        "(consistency.backup_workers, workers.on_worker_loss)"));
  }
  const Slot& first = *slots_.front();
  MutexLock lock(first.mutex);
  const uint64_t version = first.core.progress().version;
  if (!first.core.initialized() || clock <= version + kSetsAheadMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the contributors of clock ", clock, " come too early: block ", first.block,
                   " is at version ", version, ", and sets must come clock by clock"));
}

absl::Status Shard::CommitSet(uint64_t clock, const std::vector<uint32_t>& ranks,
                              const Share& share) {
  if (slots_.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckSet(clock, ranks));
  contributions_->OnCommitted(clock);
  share(slots_.size(), [&](uint64_t index) {
    Slot& slot = *slots_[index];
    Outbox outbox;
    {
      MutexLock lock(slot.mutex);
      outbox = Act(slot, slot.core.OnCommitted(clock, ranks));
    }
    Finish(slot, std::move(outbox));
  });
  return absl::OkStatus();
}

}  // namespace leeway
