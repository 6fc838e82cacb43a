// Which values of a block a read returns (PullRequest).
#pragma once

#include <cstdint>

namespace leeway {

enum class ReadKind : uint8_t {
  // The version that a worker at the start of its clock may see. The read waits until that version
  // exists.
  kAtClock,
  // The current version.
  kLatest,
  // The moving average of the weights (update.average) at the current version.
  kAverage,
};

// Returns the kind of a PullRequest or a StreamRequest.
template <typename Request>
ReadKind ReadKindOf(const Request& request) {
  if (!request.latest()) return ReadKind::kAtClock;
  return request.average() ? ReadKind::kAverage : ReadKind::kLatest;
}

}  // namespace leeway
