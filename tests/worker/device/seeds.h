// How many seeds of a device's scheduler a test runs through.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace leeway::testing {

// `usual`, or what LEEWAY_FAKE_SEEDS says: 10000 before a release (ctest -C long).
inline uint64_t Seeds(uint64_t usual) {
  const char* const text = std::getenv("LEEWAY_FAKE_SEEDS");
  uint64_t seeds = 0;
  return text != nullptr && absl::SimpleAtoi(text, &seeds) ? seeds : usual;
}

}  // namespace leeway::testing
