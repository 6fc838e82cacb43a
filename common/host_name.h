// What the system's resolver knows of a host's name.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace leeway {

// Checks that the host of `address`, HOST:PORT, has an address. Returns INVALID_ARGUMENT if the
// resolver says that the host does not exist. If the resolver cannot tell now, as without a
// network, returns OK.
absl::Status CheckHostIsKnown(const std::string& address);

}  // namespace leeway
