// The device of a rank, which stays the same from life to life: another one would give other bits.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "leeway/v1/job.pb.h"
#include "worker/compute/backend.h"

namespace leeway {

using BackendMaker =
    std::function<absl::StatusOr<std::unique_ptr<Backend>>(const v1::Workers&, uint32_t rank)>;

// How long a new life looks for its rank's device, and by which clock.
struct DevicePatience {
  Duration within = {};
  std::function<void(Duration)> sleep;
};

// `began_on`: what `workers.device: auto` stood for in the rank's first life, "cpu" or "cuda";
// empty if this is the first one, which decides. A later life waits for that device, says so once
// in the log, and returns UNAVAILABLE if it does not find it in time. Without `auto` it does not
// wait.
absl::StatusOr<std::unique_ptr<Backend>> OpenRankDevice(const BackendMaker& make,
                                                        const v1::Workers& workers, uint32_t rank,
                                                        const std::string& began_on,
                                                        const DevicePatience& patience);

// What the coordinator is told: "cpu" or "cuda".
const char* KindOf(const Backend& backend);

}  // namespace leeway
