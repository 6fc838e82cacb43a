#include "client/participant/block_holder.h"

namespace leeway {

absl::StatusOr<std::unique_ptr<BlockHolder>> StartHolder(const HolderStarter& start,
                                                         const HolderPlace& place) {
  if (start) return start(place);
  return absl::UnimplementedError(
      "this job's workers hold the blocks (topology), but this program cannot. Run leeway-worker, "
      "or a program that uses libleeway-client, or use topology: {type: servers}");
}

}  // namespace leeway
