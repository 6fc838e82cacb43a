#include "server/core/checkpoint_names.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace leeway {
namespace {

// Returns "-NAME-NUMBER", or an empty string if `number` is 0.
std::string Suffix(const char* name, uint64_t number) {
  return number > 0 ? absl::StrCat("-", name, "-", number) : "";
}

}  // namespace

std::string CheckpointFolder(const std::string& run_dir, uint64_t clock) {
  return absl::StrFormat("%s/%s/%s%09d", run_dir, kCheckpointsFolder, kCheckpointPrefix, clock);
}

std::string ShardFileName(uint32_t index, uint32_t servers, uint64_t epoch, uint64_t generation) {
  return absl::StrCat("shard-", index, "-of-", servers, Suffix("epoch", epoch),
                      Suffix("generation", generation), ".lwck");
}

std::string WorkerStateFileName(uint32_t rank, uint64_t incarnation, uint64_t clock,
                                uint64_t generation) {
  return absl::StrCat("worker-", rank, "-life-", incarnation, "-clock-", clock,
                      Suffix("generation", generation), ".lwck");
}

}  // namespace leeway
