#include "launcher/kubernetes/pod_sizes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;
// The memory of a server or worker process without a model. The estimate is generous, because
// Kubernetes kills a process above its limit.
constexpr uint64_t kProcessBytes = 160 * kMebibyte;
// The host's memory that CUDA's libraries and their data need.
constexpr uint64_t kCudaBytes = 2048 * kMebibyte;

std::string LimitFor(uint64_t bytes) {
  constexpr uint64_t kStep = 64 * kMebibyte;
  const uint64_t wanted = bytes + bytes / 4;
  return absl::StrCat((wanted + kStep - 1) / kStep * kStep / kMebibyte, "Mi");
}

}  // namespace

std::string ServerMemory(uint64_t bytes) { return LimitFor(bytes + kProcessBytes); }

std::string WorkerMemory(uint64_t bytes, bool on_gpu) {
  return LimitFor(bytes + kProcessBytes + (on_gpu ? kCudaBytes : 0));
}

uint32_t HoldersThatStay(uint32_t holders, uint32_t replicas) {
  const uint32_t may_go = std::max<uint32_t>(1, replicas == 0 ? 0 : replicas - 1);
  return holders - std::min(may_go, holders);
}

}  // namespace leeway
