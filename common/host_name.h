// What the system's resolver knows of a host's name.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace leeway {

// Whether the host of `address`, HOST:PORT, has an address. INVALID_ARGUMENT: the resolver says
// that there is none. Where it cannot tell now, as without a network, the host may be known.
absl::Status CheckHostIsKnown(const std::string& address);

}  // namespace leeway
