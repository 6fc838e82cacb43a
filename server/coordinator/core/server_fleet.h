// The job's servers: which process each server is, whether the server is here, and which processes
// can reach it. Owns the table, the processes and the networks. The core must report here
// registrations, heartbeats and the ends of leases. Issues the commands with which the host
// connects to servers that come and disconnects from servers that go.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/commands.h"
#include "server/coordinator/core/job_facts.h"
#include "server/coordinator/core/reachability.h"
#include "server/coordinator/core/server_processes.h"
#include "server/coordinator/core/server_table.h"

namespace leeway {

// Pure; not thread-safe.
class ServerFleet {
 public:
  ServerFleet(const JobFacts& facts, Commands& commands);

  const ServerTable& table() const { return table_; }
  const ServerProcesses& processes() const { return processes_; }

  // Does the checks of ServerProcesses::Check and Reachability::CheckServer.
  absl::Status Check(const v1::RegisterServerRequest& request, const Membership& ranks) const;
  // Checks that a worker can reach every server that is here.
  absl::Status CheckWorker(const std::string& who, const std::string& network) const;
  void TakeNetwork(uint32_t rank, const std::string& network) { reach_.Take(rank, network); }

  // Returns true if this process holds the index already, so that its registration is a repetition.
  bool Known(const v1::RegisterServerRequest& request) const;
  void Claim(const v1::RegisterServerRequest& request) { processes_.Claim(request); }
  std::optional<v1::RegisterServerRequest> TakeClaim(uint32_t index, uint64_t nonce) {
    return processes_.TakeClaim(index, nonce);
  }
  void Register(const v1::RegisterServerRequest& request, Time now);
  // Returns true if the server was lost and is back.
  bool Seen(uint32_t index, Time now);
  void TakeHeartbeat(uint32_t index, const v1::ServerLoad& load) {
    processes_.Confirm(index);
    table_.TakeLoad(index, load);
  }
  void MarkReady(uint32_t index) { table_.MarkReady(index); }
  void MarkAllUnready() { table_.MarkAllUnready(); }
  void MarkShutDown(uint32_t index) { table_.MarkShutDown(index); }

  // Marks the server as leaving in order.
  void Drain(uint32_t index);
  void Want(uint32_t servers) { table_.Want(servers); }
  // Removes a server that is not wanted and holds nothing.
  void Remove(uint32_t index);
  // Returns true if the process with this nonce is the server, and has never been considered gone.
  bool MayBeGone(uint32_t index, uint64_t nonce) const;
  void TakeForGone(uint32_t index);
  // Marks each server as lost whose lease has ended, and returns these servers. The caller then
  // calls Disconnect() for each.
  std::vector<uint32_t> Expire(Time now) { return table_.Expire(now); }
  void Disconnect(uint32_t index);
  void Forgive(Time now) { table_.Forgive(now); }

  // Returns true if all servers that are here report the same host.
  bool OnOneHost() const;
  void Fill(v1::JobStatus& status) const;

 private:
  Commands& commands_;
  ServerTable table_;
  ServerProcesses processes_;
  Reachability reach_;
};

}  // namespace leeway
