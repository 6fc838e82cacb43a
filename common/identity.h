// Names for processes and jobs, the only thing that differs between two runs of one seed.
#pragma once

#include <cstdint>

namespace leeway {

// Returns 64 random bits from the system.
uint64_t RandomIdentity();

}  // namespace leeway
