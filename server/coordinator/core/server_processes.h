// Which process is the server of each index: the one that has registered, those that had the index
// before, and one that says it has it. Owns what a registration says; must be told of each
// registration, and of each heartbeat by which a process shows that it lives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

struct ProcessEntry {
  std::string address;
  v1::LocalEndpoint local;
  // RegisterServerRequest.network.
  std::string network;
  uint64_t nonce = 0;
  // For its status.
  uint32_t pid = 0;
  // Of the blocks that it had when it registered.
  std::optional<uint64_t> held_generation;
  // Of processes that had the index before.
  std::vector<uint64_t> past;
  // A process that says it has the index, and was not heard since.
  std::optional<v1::RegisterServerRequest> claim;
  // It has been heard since it registered.
  bool confirmed = false;
  // It was taken for gone once, and has been heard since.
  bool seemed_gone = false;
};

// Pure; not thread-safe.
class ServerProcesses {
 public:
  // Indices 0 to `most` - 1.
  explicit ServerProcesses(uint32_t most) : processes_(most) {}

  // INVALID_ARGUMENT for an index or an address that cannot be.
  absl::Status Check(const v1::RegisterServerRequest& request) const;
  // It is said by the process that has the index, where it was.
  bool Same(const v1::RegisterServerRequest& request) const;
  // One that held the index before the one that does, and that one is alive: its registration comes
  // late, for the process is dead.
  bool Past(const v1::RegisterServerRequest& request) const;
  void Register(const v1::RegisterServerRequest& request);
  // Another process says that it has the index; the newest who says so counts.
  void Claim(const v1::RegisterServerRequest& request) {
    processes_[request.index()].claim = request;
  }
  // By heartbeat: what that process has said.
  std::optional<v1::RegisterServerRequest> TakeClaim(uint32_t index, uint64_t nonce);
  // By heartbeat: is it the process that holds the index?
  bool Holds(uint32_t index, uint64_t nonce) const { return processes_[index].nonce == nonce; }
  void Confirm(uint32_t index) { processes_[index].confirmed = true; }
  // Where it was nobody listens any more. That counts once a process: of one that is heard after
  // it, the address says nothing, and only the lease counts.
  void TakeForGone(uint32_t index) { processes_[index].seemed_gone = true; }
  // No process has the index any more. Where it was is kept.
  void Forget(uint32_t index);

  const ProcessEntry& operator[](uint32_t index) const { return processes_[index]; }

 private:
  std::vector<ProcessEntry> processes_;
};

}  // namespace leeway
