// The address at which processes of one machine reach each other.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace leeway {

// Returns 127.0.0.1, or [::1] on a machine without IPv4.
std::string LoopbackHost();

// Returns UNAVAILABLE if `address`, HOST:PORT, is a loopback address and no connection to it works,
// as in a network namespace whose loopback interface is down. Returns OK for every other address,
// and for an empty one.
absl::Status CheckLoopback(const std::string& address);

}  // namespace leeway
