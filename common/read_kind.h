// Which values of a block a read is for (PullRequest).
#pragma once

#include <cstdint>

namespace leeway {

enum class ReadKind : uint8_t {
  // The version that a worker starting its clock may see; waits for it.
  kAtClock,
  // The current version, whatever it is.
  kLatest,
  // The moving average of the weights (update.average), as of the current version.
  kAverage,
};

// What a PullRequest or a StreamRequest reads.
template <typename Request>
ReadKind ReadKindOf(const Request& request) {
  if (!request.latest()) return ReadKind::kAtClock;
  return request.average() ? ReadKind::kAverage : ReadKind::kLatest;
}

}  // namespace leeway
