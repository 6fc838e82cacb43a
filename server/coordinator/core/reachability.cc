#include "server/coordinator/core/reachability.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/status.h"

namespace leeway {
namespace {

// Returns true if both networks are known, and differ.
bool Apart(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}

bool OnlyAtHome(const std::string& address) {
  const auto parts = SplitAddress(address);
  return parts.ok() && ReachOf(*parts) == Reach::kOwnHost;
}

std::string NotReached(uint32_t server, const std::string& address, const std::string& by) {
  return absl::StrCat(
      "server ", server, " has the address ", address,
      ", which works on its own machine only, but ", by, " runs on another machine: start server ",
      server, " with --listen HOST:PORT (or --advertise), where HOST is an address of its machine");
}

}  // namespace

absl::Status Reachability::CheckServer(const v1::RegisterServerRequest& request,
                                       const Servers& servers, const Membership& ranks) const {
  const uint32_t index = request.index();
  RETURN_IF_ERROR(CheckPeer(absl::StrCat("server ", index), request.network(), servers, index));
  if (!OnlyAtHome(request.address())) return absl::OkStatus();
  std::string who;
  if (Apart(request.network(), own_)) who = "the coordinator";
  for (uint32_t i = 0; i < servers.table.size(); ++i) {
    const bool counts = i != index && servers.table[i].here();
    if (counts && Apart(request.network(), servers.processes[i].network)) {
      who = absl::StrCat("server ", i);
    }
  }
  for (const uint32_t rank : ranks.In({RankState::kRunning, RankState::kLost})) {
    if (Apart(request.network(), networks_[rank])) who = absl::StrCat("worker ", rank);
  }
  if (who.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(NotReached(index, request.address(), who));
}

absl::Status Reachability::CheckPeer(const std::string& who, const std::string& network,
                                     const Servers& servers, std::optional<uint32_t> without) {
  for (uint32_t i = 0; i < servers.table.size(); ++i) {
    const ProcessEntry& server = servers.processes[i];
    if (i == without || !servers.table[i].here() || !Apart(network, server.network)) continue;
    if (OnlyAtHome(server.address)) {
      return absl::FailedPreconditionError(NotReached(i, server.address, who));
    }
  }
  return absl::OkStatus();
}

}  // namespace leeway
