// Names for processes and jobs: the one thing that must differ between two runs of the same seed.
#pragma once

#include <cstdint>

namespace leeway {

// 64 random bits from the system.
uint64_t RandomIdentity();

}  // namespace leeway
