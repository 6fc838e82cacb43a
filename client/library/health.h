// A port for the probes of orchestrators, as leeway-worker has it.
#pragma once

#include "absl/status/status.h"

namespace leeway {

// Opens the port that LEEWAY_HEALTH names, once in a process. The port stays until the process
// ends, also between two jobs. INVALID_ARGUMENT if the variable is not an address, UNAVAILABLE if
// the port is taken. OK without the variable.
absl::Status OpenHealthPort();

}  // namespace leeway
