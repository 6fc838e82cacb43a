// The port for the health probes of an orchestrator, as leeway-worker has it.
#pragma once

#include "absl/status/status.h"

namespace leeway {

// Opens the port that LEEWAY_HEALTH names, once in a process. The port stays open until the process
// ends, even between two jobs. Returns INVALID_ARGUMENT if the variable is not an address, and
// UNAVAILABLE if another process uses the port. Returns OK if the variable is not set.
absl::Status OpenHealthPort();

}  // namespace leeway
