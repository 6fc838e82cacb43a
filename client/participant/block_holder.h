// The server in a worker's process, in jobs whose workers hold the blocks (topology.type:
// all_reduce). The client knows it by this interface only, because it does not depend on servers.
// peer/peer.h is the server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"

namespace leeway::v1 {
class TrainingJob;
}

namespace leeway {

// Thread-safe.
class BlockHolder {
 public:
  virtual ~BlockHolder() = default;

  // Leaves the job at once, which ends AwaitEnd.
  virtual void Leave() = 0;
  // Waits until the job is over. Until then the other workers may read this one's blocks. To be
  // called after the worker has left the job in order.
  virtual void AwaitEnd() = 0;
};

struct HolderPlace {
  // Required, because the rank decides which blocks the worker holds.
  std::optional<uint32_t> rank;
  // HOST:PORT of server 0.
  std::string coordinator;
  // How long to look for server 0, and to wait for a taken port.
  Duration start_within{};
};

// Listens, and joins the job from a thread of its own. To be called before the worker registers,
// because the job begins when all holders of blocks are there. Returns INVALID_ARGUMENT or
// FAILED_PRECONDITION if this process may not hold blocks.
using HolderStarter =
    std::function<absl::StatusOr<std::unique_ptr<BlockHolder>>(const HolderPlace& place)>;

// Calls `start` if the job's workers hold blocks; otherwise returns null. Returns UNIMPLEMENTED if
// they do and `start` is null.
absl::StatusOr<std::unique_ptr<BlockHolder>> HoldBlocks(const v1::TrainingJob& job,
                                                        const HolderStarter& start,
                                                        const HolderPlace& place);

}  // namespace leeway
