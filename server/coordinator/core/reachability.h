// Who may be told of whom: a server at a loopback address is one for processes of its own network.
// Owns the networks of the coordinator and the workers; must be told of each worker's.
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
  // `own`: the coordinator's network; empty: unknown, as everybody's.
  Reachability(std::string own, uint32_t ranks) : own_(std::move(own)), networks_(ranks) {}

  void Take(uint32_t rank, const std::string& network) { networks_[rank] = network; }

  // The servers that are here, and where.
  struct Servers {
    const ServerTable& table;
    const ServerProcesses& processes;
  };
  // INVALID_ARGUMENT: the server is at a loopback address, and somebody is not on its host;
  // FAILED_PRECONDITION: another server is, and this one is not on that host.
  absl::Status CheckServer(const v1::RegisterServerRequest& request, const Servers& servers,
                           const Membership& ranks) const;
  // FAILED_PRECONDITION: one of the servers, `without` aside, is only reached by its own host's
  // processes, which `who` is none of.
  static absl::Status CheckPeer(const std::string& who, const std::string& network,
                                const Servers& servers,
                                std::optional<uint32_t> without = std::nullopt);

 private:
  const std::string own_;
  // By rank: RegisterWorkerRequest.network.
  std::vector<std::string> networks_;
};

}  // namespace leeway
