#include "client/participant/block_holder.h"

#include "leeway/v1/job.pb.h"

namespace leeway {

absl::StatusOr<std::unique_ptr<BlockHolder>> HoldBlocks(const v1::TrainingJob& job,
                                                        const HolderStarter& start,
                                                        const HolderPlace& place) {
  if (!job.topology().has_all_reduce()) return nullptr;
  if (!start) {
    return absl::UnimplementedError(
        "topology.type: all_reduce: this program cannot hold blocks. Run leeway-worker, or a "
        "program "
        "that uses libleeway-client, or use topology: {type: servers}");
  }
  return start(place);
}

}  // namespace leeway
