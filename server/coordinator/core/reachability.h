// Whether processes can reach the servers: a server at a loopback address is reachable only in its
// own network. Owns the networks of the coordinator and the workers. The core must tell it each
// worker's network.
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
  // `own`: the coordinator's network. An empty network is unknown, here and in messages.
  Reachability(std::string own, uint32_t ranks) : own_(std::move(own)), networks_(ranks) {}

  void Take(uint32_t rank, const std::string& network) { networks_[rank] = network; }

  // The registered servers, and their addresses.
  struct Servers {
    const ServerTable& table;
    const ServerProcesses& processes;
  };
  // INVALID_ARGUMENT: the server is at a loopback address, and another process is not on its host.
  // FAILED_PRECONDITION: another server is at a loopback address, and this one is not on that host.
  absl::Status CheckServer(const v1::RegisterServerRequest& request, const Servers& servers,
                           const Membership& ranks) const;
  // FAILED_PRECONDITION: one of the servers (except `without`) is reachable only on its own host,
  // and `who` runs on another one.
  static absl::Status CheckPeer(const std::string& who, const std::string& network,
                                const Servers& servers,
                                std::optional<uint32_t> without = std::nullopt);

 private:
  const std::string own_;
  // By rank: RegisterWorkerRequest.network.
  std::vector<std::string> networks_;
};

}  // namespace leeway
