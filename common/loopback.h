// The address at which processes of one machine reach each other.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace leeway {

// Returns 127.0.0.1, or [::1] on a machine without IPv4.
std::string LoopbackHost();

// UNAVAILABLE: `address`, HOST:PORT, is this machine's own, and nothing reaches it, as in a network
// namespace whose loopback interface is down. Any other, and none, is OK.
absl::Status CheckLoopback(const std::string& address);

}  // namespace leeway
