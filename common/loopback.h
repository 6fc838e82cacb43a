// Where processes of one machine reach each other.
#pragma once

#include <string>

namespace leeway {

// 127.0.0.1, or [::1] on a machine that has no IPv4.
std::string LoopbackHost();

}  // namespace leeway
