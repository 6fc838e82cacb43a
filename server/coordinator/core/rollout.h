// Tells the servers who holds which shard, in rounds: a round's number comes back with each answer,
// and answers to earlier rounds count for nothing. Owns who has heard of the latest round; must be
// told of each answer, and of servers that come and go.
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

  // Rounds so far; the latest one's number.
  uint64_t round() const { return round_; }

  // A round in which every server that is here makes its blocks anew.
  void Configure(const v1::ConfigureRequest& request, const ServerTable& servers, Time deadline);
  // Such a round is under way, and has not been broken off.
  bool configuring() const { return configuring_; }
  void BreakOff() { configuring_ = false; }

  // A round of a new placement: those in `first`, and those of rounds before that have not heard
  // of it, hear of it before everybody else does. Send() is to follow.
  void Begin(const std::set<uint32_t>& first, const ServerTable& servers);
  // To those that are here and whose turn it is.
  void Send(const v1::ConfigureRequest& request, const ServerTable& servers, Time deadline);
  // The server has taken the latest placement. True: it was the last one of the first, and now it
  // is the others' turn: Send() is to follow.
  bool Heard(uint32_t server);
  // Some must hear of it before the others do, and have not.
  bool waits() const { return !first_.empty(); }
  // Nobody waits for that one, or for anybody.
  void Forget(uint32_t server) { first_.erase(server); }
  void ForgetAll() { first_.clear(); }

 private:
  Commands& commands_;
  uint64_t round_ = 0;
  bool configuring_ = false;
  // Must hear of the placement before the others do; and those of them who have.
  std::set<uint32_t> first_;
  std::set<uint32_t> heard_;
  // Whose turn it is not: they come later, or have heard of it.
  std::set<uint32_t> skipped_;
};

}  // namespace leeway
