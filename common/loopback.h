// The address at which processes of one machine reach each other.
#pragma once

#include <string>

namespace leeway {

// Returns 127.0.0.1, or [::1] on a machine without IPv4.
std::string LoopbackHost();

}  // namespace leeway
