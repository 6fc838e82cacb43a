// The server in a worker's process, in jobs whose workers hold the blocks. The client uses it only
// through this interface, because the client does not depend on server code. peer/peer.h implements
// the interface.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/peers/meeting_place.h"
#include "common/peers/outbox.h"

namespace leeway {

class BlockHolder {
 public:
  virtual ~BlockHolder() = default;

  // Leaves the job at once, which ends AwaitEnd. May be called from any thread.
  virtual void Leave() = 0;
  // Waits until the job is over. Until then the other workers may read the blocks here. Call this
  // after the worker has left the job in order.
  virtual void AwaitEnd() = 0;

  // What this worker publishes for the other workers, and the weights that they meet. Both live as
  // long as the holder.
  virtual Outbox& outbox() = 0;
  virtual MeetingPlace& meetings() = 0;
};

struct HolderPlace {
  // The worker's rank. Required, because the rank decides which blocks the worker holds.
  std::optional<uint32_t> rank;
  // HOST:PORT of server 0.
  std::string coordinator;
  // How long to look for server 0, and to wait for a port that is in use.
  Duration start_within{};
};

// Starts a server that listens, and joins the job on a thread of its own. Call this before the
// worker registers, because the job begins only when all holders of blocks are there. Returns
// INVALID_ARGUMENT or FAILED_PRECONDITION if this process may not hold blocks.
using HolderStarter =
    std::function<absl::StatusOr<std::unique_ptr<BlockHolder>>(const HolderPlace& place)>;

// Calls `start`, or returns UNIMPLEMENTED if it is null. Call this if the job's workers hold blocks
// (WorkersHoldBlocks in config/topology.h).
absl::StatusOr<std::unique_ptr<BlockHolder>> StartHolder(const HolderStarter& start,
                                                         const HolderPlace& place);

}  // namespace leeway
