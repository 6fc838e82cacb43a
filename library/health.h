// The port for an orchestrator's health probes, as in leeway-worker.
#pragma once

#include "absl/status/status.h"

namespace leeway {

// Opens the port of LEEWAY_HEALTH, once in a process. The port stays open until the process ends,
// also between two jobs. Returns INVALID_ARGUMENT if the variable is not an address, and
// UNAVAILABLE if another process uses the port. Returns OK if the variable is not set.
absl::Status OpenHealthPort();

}  // namespace leeway
