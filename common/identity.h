// Random names for processes and jobs. Nothing else differs between two runs with the same seed.
#pragma once

#include <cstdint>

namespace leeway {

// Returns 64 random bits from the operating system.
uint64_t RandomIdentity();

}  // namespace leeway
