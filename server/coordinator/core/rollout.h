// Tells the servers, in rounds, which server holds which shard. A server's answer carries its
// round's number; answers to earlier rounds are ignored. Owns the set of servers that have answered
// in the latest round. The core must report here each answer, and each server that comes or goes.
#pragma once

#include <cstdint>
#include <set>

#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/commands.h"
#include "server/coordinator/core/server_table.h"

namespace leeway {

// Pure; not thread-safe.
class Rollout {
 public:
  explicit Rollout(Commands& commands) : commands_(commands) {}

  // The number of rounds so far, which is also the number of the latest one.
  uint64_t round() const { return round_; }

  // Begins a round in which every server that is here makes its blocks anew.
  void Configure(const v1::ConfigureRequest& request, const ServerTable& servers, Time deadline);
  // Returns true from Configure() until BreakOff().
  bool configuring() const { return configuring_; }
  void BreakOff() { configuring_ = false; }

  // Begins a round for a new placement. The servers in `first` are told of the placement before all
  // others. So are servers that were first in an earlier round and have not answered yet. The
  // caller then calls Send().
  void Begin(const std::set<uint32_t>& first, const ServerTable& servers);
  // Sends the placement to the servers that are here and may be told now.
  void Send(const v1::ConfigureRequest& request, const ServerTable& servers, Time deadline);
  // Notes that the server has taken the latest placement. Returns true if all servers that must be
  // told first have now answered. The caller then calls Send(), for the other servers.
  bool Heard(uint32_t server);
  // Returns true if a server that must be told first has not answered yet.
  bool waits() const { return !first_.empty(); }
  // Stop waiting for one of the first servers, or for all of them.
  void Forget(uint32_t server) { first_.erase(server); }
  void ForgetAll() { first_.clear(); }

 private:
  Commands& commands_;
  uint64_t round_ = 0;
  bool configuring_ = false;
  // The servers that must be told of the placement before all others, and have not answered yet.
  std::set<uint32_t> first_;
  // The servers that have answered for the latest placement.
  std::set<uint32_t> heard_;
  // The servers that Send() skips, because they are told later or were told already.
  std::set<uint32_t> skipped_;
};

}  // namespace leeway
