#include "server/node/job_network.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/match.h"
#include "common/address.h"

namespace leeway {
namespace {

constexpr double kUnknownLink = 125e6;

// Returns true if the network interface is virtual. The folder of an interface is a link to the
// folder of its device.
bool IsVirtual(const std::filesystem::path& interface) {
  std::error_code error;
  const std::string device = std::filesystem::canonical(interface, error).string();
  return absl::StrContains(device, "/devices/virtual/");
}

}  // namespace

double NominalLink(const std::string& folder) {
  double fastest = 0;
  std::error_code error;
  for (const auto& interface : std::filesystem::directory_iterator(folder, error)) {
    if (IsVirtual(interface.path())) continue;
    std::string state;
    // The speed in megabits per second. The file contains -1, or cannot be read, if the speed is
    // unknown.
    double speed = 0;
    std::ifstream(interface.path() / "operstate") >> state;
    std::ifstream(interface.path() / "speed") >> speed;
    if (state == "up") fastest = std::max(fastest, speed * 1e6 / 8);
  }
  return fastest > 0 ? fastest : kUnknownLink;
}

bool OnOneHost(const std::string& address, const v1::Transport& transport) {
  if (transport.type() == v1::TRANSPORT_TYPE_UNIX || transport.type() == v1::TRANSPORT_TYPE_SHM) {
    return true;
  }
  const auto parts = SplitAddress(address);
  return parts.ok() && ReachOf(*parts) == Reach::kOwnHost;
}

}  // namespace leeway
