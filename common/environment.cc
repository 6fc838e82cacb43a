#include "common/environment.h"

#include <cstdlib>

namespace leeway {

std::optional<std::string> LookUpEnvironment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == 0) return std::nullopt;
  return value;
}

}  // namespace leeway
