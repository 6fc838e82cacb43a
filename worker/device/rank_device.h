// Opens the device of a rank. It stays the same from life to life, because another device would
// give other bits.
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

// How long a new life waits for its rank's device, and how it sleeps meanwhile.
struct DevicePatience {
  Duration within = {};
  std::function<void(Duration)> sleep;
};

// `began_on` is what `workers.device: auto` stood for in the rank's first life, "cpu" or "cuda". It
// is empty in the first life, which decides. A later life waits for that device, says so once in
// the log, and returns UNAVAILABLE if it does not get it in time. It does not wait without `auto`.
absl::StatusOr<std::unique_ptr<Backend>> OpenRankDevice(const BackendMaker& make,
                                                        const v1::Workers& workers, uint32_t rank,
                                                        const std::string& began_on,
                                                        const DevicePatience& patience);

// Returns the name that the coordinator records: "cpu" or "cuda".
const char* KindOf(const Backend& backend);

}  // namespace leeway
