// The servers of the job: where each is, whether it is ready, since when it is silent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

enum class ServerState {
  kWaiting,
  kRegistered,
  // Its blocks are made.
  kReady,
  kLost,
};
const char* ServerStateName(ServerState state);

struct ServerEntry {
  ServerState state = ServerState::kWaiting;
  std::string address;
  v1::LocalEndpoint local;
  uint64_t nonce = 0;
  // Of processes that had the index before.
  std::vector<uint64_t> past;
  // It has been heard since it registered.
  bool confirmed = false;
  // Of the blocks that it had when it registered.
  std::optional<uint64_t> held_generation;
  Time seen;
  bool shut_down = false;
  // By its last heartbeat.
  v1::ServerLoad load;

  bool here() const { return state == ServerState::kRegistered || state == ServerState::kReady; }
};

// Pure; not thread-safe.
class ServerTable {
 public:
  ServerTable(uint32_t servers, Duration lease) : lease_(lease), servers_(servers) {}

  // INVALID_ARGUMENT for an index or an address that cannot be.
  absl::Status Check(const v1::RegisterServerRequest& request) const;
  // The process that holds the index already: its registration is a repetition.
  bool Known(const v1::RegisterServerRequest& request) const;
  // One that held the index before the one that does, and that one is alive: its registration comes
  // late, for the process is dead.
  bool Past(const v1::RegisterServerRequest& request) const;
  void Register(const v1::RegisterServerRequest& request, Time now);

  // By heartbeat: is it the process that holds the index?
  bool Holds(uint32_t index, uint64_t nonce) const { return servers_[index].nonce == nonce; }
  void Confirm(uint32_t index) { servers_[index].confirmed = true; }
  // True if it had been lost and is back.
  bool Seen(uint32_t index, Time now);
  void MarkReady(uint32_t index) { servers_[index].state = ServerState::kReady; }
  void TakeLoad(uint32_t index, const v1::ServerLoad& load) { servers_[index].load = load; }
  void MarkShutDown(uint32_t index) { servers_[index].shut_down = true; }
  // Blocks must be made anew.
  void MarkAllUnready();

  // Servers whose lease has ended; they are lost now.
  std::vector<uint32_t> Expire(Time now);
  void Forgive(Time now);

  uint32_t size() const { return static_cast<uint32_t>(servers_.size()); }
  const ServerEntry& operator[](uint32_t index) const { return servers_[index]; }
  // Neither registered nor ready.
  std::vector<uint32_t> Missing() const;
  // Not ready.
  std::vector<uint32_t> Unready() const;
  // Everything that was ever connected has shut down, or is lost.
  bool AllShutDown() const;

 private:
  const Duration lease_;
  std::vector<ServerEntry> servers_;
};

}  // namespace leeway
