// Checks whether processes can reach the servers. A server at a loopback address is reachable only
// in its own network. Owns the networks of the coordinator and the workers. The core must report
// each worker's network here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/membership.h"
#include "server/coordinator/core/server_processes.h"
#include "server/coordinator/core/server_table.h"

namespace leeway {

// Pure; not thread-safe.
class Reachability {
 public:
  // `own` is the coordinator's network. Here and in messages an empty string means that the network
  // is unknown.
  Reachability(std::string own, uint32_t ranks) : own_(std::move(own)), networks_(ranks) {}

  void Take(uint32_t rank, const std::string& network) { networks_[rank] = network; }

  // The servers that have registered, and their addresses.
  struct Servers {
    const ServerTable& table;
    const ServerProcesses& processes;
  };
  // Returns INVALID_ARGUMENT if this server is at a loopback address and some other process is on
  // another host. Returns FAILED_PRECONDITION if some other server is at a loopback address and
  // this server is on another host.
  absl::Status CheckServer(const v1::RegisterServerRequest& request, const Servers& servers,
                           const Membership& ranks) const;
  // Returns FAILED_PRECONDITION if one of the servers (except `without`) is reachable only on its
  // own host, and `who` runs on another host.
  static absl::Status CheckPeer(const std::string& who, const std::string& network,
                                const Servers& servers,
                                std::optional<uint32_t> without = std::nullopt);

 private:
  const std::string own_;
  // The network of each rank, from RegisterWorkerRequest.network.
  std::vector<std::string> networks_;
};

}  // namespace leeway
