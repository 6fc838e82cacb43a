// The servers of the job: where each is, whether it is ready, since when it is silent. Those with
// the first indices are wanted, and how many may change; who is asked for while the job is under
// way is not waited for before it has come once.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
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
  // There were too many, and it held nothing any more.
  kRemoved,
};
const char* ServerStateName(ServerState state);

struct ServerEntry {
  ServerState state = ServerState::kWaiting;
  // The job has begun with it, or it has come.
  bool expected = false;
  std::string address;
  v1::LocalEndpoint local;
  uint64_t nonce = 0;
  // Of processes that had the index before.
  std::vector<uint64_t> past;
  // A process that says it has the index, and was not heard since.
  std::optional<v1::RegisterServerRequest> claim;
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
  // Indices 0 to `most` - 1; the first `wanted` are, and are waited for.
  ServerTable(uint32_t most, uint32_t wanted, Duration lease);

  uint32_t wanted() const { return wanted_; }
  bool Wanted(uint32_t index) const { return index < wanted_; }
  // Another number, from now on.
  void Want(uint32_t servers) { wanted_ = servers; }
  // Whether it was here before this coordinator.
  void Expect(uint32_t index, bool here) { servers_[index].expected = here; }
  // Too many: what is heard of it from now on is no sign of life.
  void Remove(uint32_t index);

  // INVALID_ARGUMENT for an index or an address that cannot be.
  absl::Status Check(const v1::RegisterServerRequest& request) const;
  // The process that holds the index already: its registration is a repetition.
  bool Known(const v1::RegisterServerRequest& request) const;
  // One that held the index before the one that does, and that one is alive: its registration comes
  // late, for the process is dead.
  bool Past(const v1::RegisterServerRequest& request) const;
  void Register(const v1::RegisterServerRequest& request, Time now);
  // Another process says that it has the index; the newest who says so counts.
  void Claim(const v1::RegisterServerRequest& request);
  // By heartbeat: what that process has said.
  std::optional<v1::RegisterServerRequest> TakeClaim(uint32_t index, uint64_t nonce);

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
  // Waited for: neither registered nor ready; not ready.
  std::vector<uint32_t> Missing() const;
  std::vector<uint32_t> Unready() const;
  // Wanted, whether it has ever come or not, and not here.
  std::vector<uint32_t> Absent() const;
  std::set<uint32_t> Here() const;
  // All that are here say that they are on the same.
  bool OnOneHost() const;
  // Everything that was ever connected has shut down, or is lost.
  bool AllShutDown() const;

 private:
  const Duration lease_;
  uint32_t wanted_;
  std::vector<ServerEntry> servers_;
};

}  // namespace leeway
