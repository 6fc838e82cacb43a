#include "common/identity.h"

#include <random>

namespace leeway {

uint64_t RandomIdentity() {
  std::random_device random;
  return (uint64_t{random()} << 32) | random();
}

}  // namespace leeway
