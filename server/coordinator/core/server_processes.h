// Records which process is the server with each index. For each index there are the registered
// process, the processes that had the index before, and perhaps a process that claims the index.
// Owns the data of registrations. The core must report here each registration, and each heartbeat
// by which a process shows that it is alive.
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
  // From RegisterServerRequest.network.
  std::string network;
  uint64_t nonce = 0;
  // The process's id, which the status shows.
  uint32_t pid = 0;
  // The generation of the blocks that the process had when it registered.
  std::optional<uint64_t> held_generation;
  // The nonces of the processes that had the index before.
  std::vector<uint64_t> past;
  // The registration of another process that claims the index, and has sent nothing since.
  std::optional<v1::RegisterServerRequest> claim;
  // True if the process has sent a message since it registered.
  bool confirmed = false;
  // True if the process was considered gone once, but sent a message later. From then on the
  // process is lost only when its lease ends.
  bool seemed_gone = false;
};

// Pure; not thread-safe.
class ServerProcesses {
 public:
  // Indices are 0 to `most` - 1.
  explicit ServerProcesses(uint32_t most) : processes_(most) {}

  // Returns INVALID_ARGUMENT if the index or the address is not possible.
  absl::Status Check(const v1::RegisterServerRequest& request) const;
  // Returns true if the process that has the index sent this request, with the same address.
  bool Same(const v1::RegisterServerRequest& request) const;
  // Returns true if the request is from a process that had the index earlier, while the present
  // process is alive. Such a registration is a late message of a dead process.
  bool Past(const v1::RegisterServerRequest& request) const;
  void Register(const v1::RegisterServerRequest& request);
  // Records that another process claims the index. Only the newest claim counts.
  void Claim(const v1::RegisterServerRequest& request) {
    processes_[request.index()].claim = request;
  }
  // Call this function for each heartbeat. Returns the claim that the heartbeat's process has made,
  // if there is one.
  std::optional<v1::RegisterServerRequest> TakeClaim(uint32_t index, uint64_t nonce);
  bool Holds(uint32_t index, uint64_t nonce) const { return processes_[index].nonce == nonce; }
  void Confirm(uint32_t index) { processes_[index].confirmed = true; }
  // Marks the process as gone, because no process listens at its address any more. A process can be
  // marked only once. If it sends a message later, it is lost only when its lease ends.
  void TakeForGone(uint32_t index) { processes_[index].seemed_gone = true; }
  // Forgets the process that had the index, so that no process has it. Keeps the address.
  void Forget(uint32_t index);

  const ProcessEntry& operator[](uint32_t index) const { return processes_[index]; }

 private:
  std::vector<ProcessEntry> processes_;
};

}  // namespace leeway
