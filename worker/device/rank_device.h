// Opens the device of a rank. The device stays the same from life to life, because another kind of
// device would give other bits.
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

// How long a new life waits for its rank's device, and how it sleeps while it waits.
struct DevicePatience {
  Duration within = {};
  std::function<void(Duration)> sleep;
};

// Opens the device. `began_on` is the device that `workers.device: auto` chose in the rank's first
// life, "cpu" or "cuda". It is empty in the first life, which makes the choice. A later life waits
// for that device and logs once that it waits. Returns UNAVAILABLE if the device is not available
// in time. Does not wait if `workers.device` is not `auto`.
absl::StatusOr<std::unique_ptr<Backend>> OpenRankDevice(const BackendMaker& make,
                                                        const v1::Workers& workers, uint32_t rank,
                                                        const std::string& began_on,
                                                        const DevicePatience& patience);

// Returns the name that the coordinator records: "cpu" or "cuda".
const char* KindOf(const Backend& backend);

}  // namespace leeway
