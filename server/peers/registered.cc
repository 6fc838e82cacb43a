#include "server/peers/registered.h"

#include "absl/strings/str_cat.h"
#include "server/core/generations.h"

namespace leeway {

absl::Status Registered::Check(uint32_t rank, uint64_t job, uint64_t generation) const {
  if (!life)
    return absl::UnavailableError(absl::StrCat("worker ", rank, " has not registered yet"));
  if (job != life->job) {
    return absl::FailedPreconditionError(absl::StrCat("header.job: ", absl::Hex(job),
                                                      " is not the job of worker ", rank, " (",
                                                      absl::Hex(life->job), ")"));
  }
  if (generation == life->generation) return absl::OkStatus();
  if (generation < life->generation) {
    return absl::FailedPreconditionError(
        absl::StrCat("header.generation: is ", generation,
                     ", but the job has gone back to a checkpoint and is now at generation ",
                     life->generation, ": register again"));
  }
  if (generation - life->generation > kGenerationsAhead) {
    return absl::InvalidArgumentError(absl::StrCat("header.generation: ", generation,
                                                   " is impossible: the job is at generation ",
                                                   life->generation));
  }
  return absl::UnavailableError(
      absl::StrCat("worker ", rank, " is at generation ", life->generation,
                   " and has not registered for generation ", generation, " yet"));
}

}  // namespace leeway
