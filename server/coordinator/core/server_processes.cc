#include "server/coordinator/core/server_processes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/address.h"

namespace leeway {
namespace {

// The most past processes remembered for each index. A launcher restarts a server less often.
constexpr size_t kPastMax = 64;
// The number of bytes of an invalid address that a message shows.
constexpr size_t kAddressShown = 100;

}  // namespace

absl::Status ServerProcesses::Check(const v1::RegisterServerRequest& request) const {
  if (request.index() >= processes_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "server index ", request.index(), ": the job can have at most ", processes_.size(),
        " servers (servers.shards), with indices 0 to ", processes_.size() - 1));
  }
  const auto address = SplitAddress(request.address());
  if (address.ok() && ReachOf(*address) != Reach::kNobody) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("server ", request.index(), " cannot be reached at its address '",
                   absl::CEscape(request.address().substr(0, kAddressShown)),
                   "': give it an address of its machine, HOST:PORT"));
}

bool ServerProcesses::Same(const v1::RegisterServerRequest& request) const {
  const ProcessEntry& process = processes_[request.index()];
  return process.address == request.address() && process.nonce == request.nonce();
}

bool ServerProcesses::Past(const v1::RegisterServerRequest& request) const {
  const ProcessEntry& process = processes_[request.index()];
  return process.confirmed && request.nonce() != 0 &&
         std::find(process.past.begin(), process.past.end(), request.nonce()) != process.past.end();
}

void ServerProcesses::Register(const v1::RegisterServerRequest& request) {
  ProcessEntry& process = processes_[request.index()];
  if (process.nonce != 0) {
    if (process.past.size() == kPastMax) process.past.erase(process.past.begin());
    process.past.push_back(process.nonce);
  }
  // A past process may get its index back.
  std::erase(process.past, request.nonce());
  process.claim.reset();
  process.confirmed = process.seemed_gone = false;
  process.address = request.address();
  process.local.set_address(request.local_address());
  process.local.set_host(request.host());
  process.network = request.network();
  process.nonce = request.nonce();
  process.pid = request.pid();
  process.held_generation.reset();
  if (request.has_held_generation()) process.held_generation = request.held_generation();
}

std::optional<v1::RegisterServerRequest> ServerProcesses::TakeClaim(uint32_t index,
                                                                    uint64_t nonce) {
  std::optional<v1::RegisterServerRequest>& claim = processes_[index].claim;
  if (!claim || claim->nonce() != nonce) return std::nullopt;
  return std::exchange(claim, std::nullopt);
}

void ServerProcesses::Forget(uint32_t index) {
  ProcessEntry& process = processes_[index];
  process.nonce = 0;
  process.past.clear();
  process.claim.reset();
  process.held_generation.reset();
}

}  // namespace leeway
