// The protocol and the version of this build. A process refuses a peer with another protocol.
#pragma once

#include <cstdint>

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

inline constexpr uint32_t kProtocol = 2;
// CMakeLists.txt reads the version from this line, for packages.
inline constexpr char kVersion[] = "0.2.0";

inline v1::Build ThisBuild() {
  v1::Build build;
  build.set_protocol(kProtocol);
  build.set_version(kVersion);
  return build;
}

}  // namespace leeway
