// The servers of the job: whether each is ready, and since when it is silent. Those with the first
// indices are wanted, and how many may change; who is asked for while the job is under way is not
// waited for before it has come once. Which process each is: server_processes.h.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/hearing.h"

namespace leeway {

enum class ServerState {
  kWaiting,
  kRegistered,
  // Its blocks are made.
  kReady,
  kLost,
  // There were too many, and it held nothing any more.
  kRemoved,
};
const char* ServerStateName(ServerState state);

struct ServerEntry {
  ServerState state = ServerState::kWaiting;
  // The job has begun with it, or it has come.
  bool expected = false;
  Time seen;
  bool shut_down = false;
  // The process that is here, or was, is to leave in order.
  bool draining = false;
  // By its last heartbeat.
  v1::ServerLoad load;

  bool here() const { return state == ServerState::kRegistered || state == ServerState::kReady; }
};

// Pure; not thread-safe.
class ServerTable {
 public:
  // Indices 0 to `most` - 1; the first `wanted` are, and are waited for.
  ServerTable(uint32_t most, uint32_t wanted, Duration lease);

  uint32_t wanted() const { return wanted_; }
  bool Wanted(uint32_t index) const { return index < wanted_; }
  // Another number, from now on.
  void Want(uint32_t servers) { wanted_ = servers; }
  // Whether it was here before this coordinator.
  void Expect(uint32_t index, bool here) { servers_[index].expected = here; }
  // A process has it from now on.
  void Register(uint32_t index, Time now);
  void Drain(uint32_t index) { servers_[index].draining = true; }
  // Too many: what is heard of it from now on is no sign of life.
  void Remove(uint32_t index);

  // True if it had been lost and is back.
  bool Seen(uint32_t index, Time now);
  void MarkReady(uint32_t index) { servers_[index].state = ServerState::kReady; }
  void TakeLoad(uint32_t index, const v1::ServerLoad& load) { servers_[index].load = load; }
  void MarkShutDown(uint32_t index) { servers_[index].shut_down = true; }
  // Blocks must be made anew.
  void MarkAllUnready();
  // Before its lease has ended.
  void Lose(uint32_t index) { servers_[index].state = ServerState::kLost; }
  // Servers whose lease has ended; they are lost now. Never server 0, whose process the coordinator
  // is part of: however deaf its port is, it is here.
  std::vector<uint32_t> Expire(Time now);
  // Who is here beside server 0, and for how long each was not heard.
  void CountSilent(Time now, Silence& silence) const;
  void Forgive(Time now);

  uint32_t size() const { return static_cast<uint32_t>(servers_.size()); }
  const ServerEntry& operator[](uint32_t index) const { return servers_[index]; }
  // Waited for: neither registered nor ready; not ready.
  std::vector<uint32_t> Missing() const;
  std::vector<uint32_t> Unready() const;
  // Wanted, whether it has ever come or not, and not here.
  std::vector<uint32_t> Absent() const;
  // To leave in order, and still here.
  std::vector<uint32_t> Draining() const;
  std::set<uint32_t> Here() const;
  // Everything that was ever connected has shut down, or is lost.
  bool AllShutDown() const;

 private:
  const Duration lease_;
  uint32_t wanted_;
  std::vector<ServerEntry> servers_;
};

}  // namespace leeway
