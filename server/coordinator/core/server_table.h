// Records for each server of the job whether it is ready, and how long it has been silent. The
// servers with the lowest indices are wanted, and their number may change. A server that becomes
// wanted while the job is under way must register once before the job ever waits for it.
// server_processes.h knows which process each server is.
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
  // The server has made its blocks.
  kReady,
  kLost,
  // The job has fewer servers now, and this server, which held nothing any more, was removed.
  kRemoved,
};
const char* ServerStateName(ServerState state);

struct ServerEntry {
  ServerState state = ServerState::kWaiting;
  // True if the job has begun with this server, or if the server has come since.
  bool expected = false;
  Time seen;
  bool shut_down = false;
  // True if the server's present or last process is leaving in order.
  bool draining = false;
  // The load in the server's last heartbeat.
  v1::ServerLoad load;
  // Counts how often a process became this server, and how often the server was lost or came back.
  uint64_t changes = 0;

  bool here() const { return state == ServerState::kRegistered || state == ServerState::kReady; }
};

// Pure; not thread-safe.
class ServerTable {
 public:
  // Indices are 0 to `most` - 1. The first `wanted` servers are wanted and waited for.
  ServerTable(uint32_t most, uint32_t wanted, Duration lease);

  uint32_t wanted() const { return wanted_; }
  bool Wanted(uint32_t index) const { return index < wanted_; }
  // Changes the number of wanted servers.
  void Want(uint32_t servers) { wanted_ = servers; }
  // `here` is true if the server was here before this coordinator started.
  void Expect(uint32_t index, bool here) { servers_[index].expected = here; }
  void Register(uint32_t index, Time now);
  void Drain(uint32_t index) { servers_[index].draining = true; }
  // Removes a server that is not wanted. From now on its messages do not count as signs of life.
  void Remove(uint32_t index);

  // Returns true if the server was lost and is back.
  bool Seen(uint32_t index, Time now);
  void MarkReady(uint32_t index) { servers_[index].state = ServerState::kReady; }
  void TakeLoad(uint32_t index, const v1::ServerLoad& load) { servers_[index].load = load; }
  void MarkShutDown(uint32_t index) { servers_[index].shut_down = true; }
  // Marks all servers as not ready, because they must make their blocks anew.
  void MarkAllUnready();
  // Marks the server as lost before its lease has ended.
  void Lose(uint32_t index);
  // Marks each server as lost whose lease has ended, and returns these servers. Server 0 is never
  // lost: the coordinator runs in its process, so the process exists even if its port receives
  // nothing.
  std::vector<uint32_t> Expire(Time now);
  // Counts the servers that are here, except server 0, and how long each has been silent.
  void CountSilent(Time now, Silence& silence) const;
  void Forgive(Time now);

  uint32_t size() const { return static_cast<uint32_t>(servers_.size()); }
  const ServerEntry& operator[](uint32_t index) const { return servers_[index]; }
  // Returns the servers for which the job waits and that are not here.
  std::vector<uint32_t> Missing() const;
  // Returns the servers for which the job waits and that are not ready.
  std::vector<uint32_t> Unready() const;
  // Returns the wanted servers that are not here, including those that have never come.
  std::vector<uint32_t> Absent() const;
  // Returns servers that are leaving in order, and are still here.
  std::vector<uint32_t> Draining() const;
  std::set<uint32_t> Here() const;
  // Returns true if every server that was ever connected has shut down or is lost.
  bool AllShutDown() const;

 private:
  const Duration lease_;
  uint32_t wanted_;
  std::vector<ServerEntry> servers_;
};

}  // namespace leeway
