// Decides which contributions a shard admits although its server's memory budget is used up
// (server/shard/admission.h).
#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/retry_hint.h"
#include "server/shard/shard.h"

namespace leeway {
namespace {

// The retry hint: about the time that a few block updates take. If a client is refused again, it
// waits longer of its own accord.
constexpr Duration kAskAgainAfter = std::chrono::milliseconds(20);

}  // namespace

absl::Status Shard::AdmitBeyondBudget(const v1::ExchangeHeader& header) {
  if (!check_.names(header) || contributions_ != nullptr) return absl::OkStatus();
  const uint32_t oldest = scale_.sync() ? admission_.Oldest() : 0;
  if (scale_.sync() && IndexOf(header.block()) == oldest) return absl::OkStatus();
  const Slot& slot = SlotOf(header.block());
  {
    MutexLock lock(slot.mutex);
    const bool at_once = !scale_.sync() && slot.core.idle();
    if (at_once || slot.core.has(header.rank(), header.clock())) return absl::OkStatus();
  }
  return WithRetryHint(
      absl::ResourceExhaustedError(absl::StrCat(
          "worker ", header.rank(), ", block ", header.block(), ", clock ", header.clock(),
          ": the server's memory for waiting contributions is full (limits.held_bytes)",
          scale_.sync()
              ? absl::StrCat("; block ", slots_[oldest]->block, " must be completed first")
              : "",
          "; send the request again")),
      kAskAgainAfter);
}

}  // namespace leeway
