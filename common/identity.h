// Makes random identities of processes and jobs. They are the only difference between two runs with
// the same seed.
#pragma once

#include <cstdint>

namespace leeway {

// Returns 64 random bits from the operating system.
uint64_t RandomIdentity();

}  // namespace leeway
