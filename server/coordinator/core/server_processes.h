// Which process is the server with each index: the registered one, those that had the index before,
// and one that claims to have it. Owns what registrations say. The core must tell it of each
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
  // Shown in the status.
  uint32_t pid = 0;
  // The generation of the blocks that the process had when it registered.
  std::optional<uint64_t> held_generation;
  // The processes that had the index before.
  std::vector<uint64_t> past;
  // A process that claims the index, and was not heard since.
  std::optional<v1::RegisterServerRequest> claim;
  // The process has been heard since it registered.
  bool confirmed = false;
  // The process was taken for gone once, and has been heard since.
  bool seemed_gone = false;
};

// Pure; not thread-safe.
class ServerProcesses {
 public:
  // Indices are 0 to `most` - 1.
  explicit ServerProcesses(uint32_t most) : processes_(most) {}

  // INVALID_ARGUMENT: the index or the address is not possible.
  absl::Status Check(const v1::RegisterServerRequest& request) const;
  // Whether the process that has the index sent this request, at the same address.
  bool Same(const v1::RegisterServerRequest& request) const;
  // Whether the request is from a process that had the index before the present one, which is
  // alive. Such a registration is late, because the old process is dead.
  bool Past(const v1::RegisterServerRequest& request) const;
  void Register(const v1::RegisterServerRequest& request);
  // Another process claims the index; the newest claim counts.
  void Claim(const v1::RegisterServerRequest& request) {
    processes_[request.index()].claim = request;
  }
  // A process has sent a heartbeat: returns its claim, if it has made one.
  std::optional<v1::RegisterServerRequest> TakeClaim(uint32_t index, uint64_t nonce);
  // Whether the process that sent this heartbeat holds the index.
  bool Holds(uint32_t index, uint64_t nonce) const { return processes_[index].nonce == nonce; }
  void Confirm(uint32_t index) { processes_[index].confirmed = true; }
  // Nobody listens at the process's address any more. That counts once for each process: if the
  // process is heard after that, only its lease counts.
  void TakeForGone(uint32_t index) { processes_[index].seemed_gone = true; }
  // No process has the index any more. The address is kept.
  void Forget(uint32_t index);

  const ProcessEntry& operator[](uint32_t index) const { return processes_[index]; }

 private:
  std::vector<ProcessEntry> processes_;
};

}  // namespace leeway
