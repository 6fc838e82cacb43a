// How many seeds of a device's scheduler a test tries.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace leeway::testing {

// Returns `usual`, or LEEWAY_FAKE_SEEDS if it is set: 10000 before a release (ctest -C long).
inline uint64_t Seeds(uint64_t usual) {
  const char* const text = std::getenv("LEEWAY_FAKE_SEEDS");
  uint64_t seeds = 0;
  return text != nullptr && absl::SimpleAtoi(text, &seeds) ? seeds : usual;
}

}  // namespace leeway::testing
