// Describes for a person which workers a request waits for.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/core/block_core.h"

namespace leeway {
namespace {

// The maximum number of missing ranks that a message names. With a thousand ranks, messages with
// all names to a thousand waiting requests would take megabytes.
constexpr size_t kNamedMax = 8;

}  // namespace

std::string BlockCore::Missing(const Waiter& waiter) const {
  const std::string what = absl::StrCat("block ", block_);
  if (!initialized_) return absl::StrCat(what, " waits for its first version (Initialize)");
  const uint64_t clock = waiter.reader->clock;
  // The contribution of the request has been accepted and waits for its update.
  if (WaitsForOwnOnly(waiter)) return absl::StrCat(what, ", clock ", clock, ": an update runs");
  const bool sync = rules_.mode == Consistency::kSync;
  const uint64_t slack = sync ? 0 : rules_.staleness;
  std::vector<std::string> missing;
  size_t more = 0;
  for (uint32_t r = 0; r < ranks_.size(); ++r) {
    const uint64_t stands = sync ? ranks_[r].next : progress_.clocks[r];
    const bool counts = sync || ranks_[r].live;
    if (!counts || stands + slack >= clock) continue;
    if (missing.size() < kNamedMax) {
      missing.push_back(Name(r));
    } else {
      ++more;
    }
  }
  if (missing.empty()) {
    const bool undecided = rules_.committed_sets && running_.empty() && Set() == nullptr;
    return absl::StrCat(
        what, undecided ? ": waiting for the coordinator to decide which contributions count"
                        : ": an update runs");
  }
  return absl::StrCat(what, ", clock ", clock, ": waiting for ", absl::StrJoin(missing, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

std::string BlockCore::Name(uint32_t rank) const {
  return absl::StrCat("worker ", rank, " (at clock ", ranks_[rank].next,
                      ranks_[rank].live ? ")" : ", lost)");
}

}  // namespace leeway
