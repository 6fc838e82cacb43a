#include "server/coordinator/server_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace leeway {

namespace {

// More than a launcher's restarts.
constexpr size_t kPastMax = 64;

}  // namespace

const char* ServerStateName(ServerState state) {
  switch (state) {
    case ServerState::kWaiting:
      return "waiting";
    case ServerState::kRegistered:
      return "registered";
    case ServerState::kReady:
      return "ready";
    case ServerState::kLost:
      return "lost";
    case ServerState::kRemoved:
      return "removed";
  }
  return "unknown";
}

ServerTable::ServerTable(uint32_t most, uint32_t wanted, Duration lease)
    : lease_(lease), wanted_(wanted), servers_(most) {
  for (uint32_t i = 0; i < wanted; ++i) Expect(i, true);
}

absl::Status ServerTable::Check(const v1::RegisterServerRequest& request) const {
  if (request.index() >= size()) {
    return absl::InvalidArgumentError(absl::StrCat("server index ", request.index(),
                                                   " of a job that can have ", size(),
                                                   " servers at most (servers.shards): indices are "
                                                   "0 to ",
                                                   size() - 1));
  }
  if (request.address().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "server ", request.index(), " does not say where it is reached: give it an address"));
  }
  return absl::OkStatus();
}

bool ServerTable::Known(const v1::RegisterServerRequest& request) const {
  const ServerEntry& entry = servers_[request.index()];
  const bool none = entry.state == ServerState::kWaiting || entry.state == ServerState::kRemoved;
  return !none && entry.address == request.address() && entry.nonce == request.nonce();
}

bool ServerTable::Past(const v1::RegisterServerRequest& request) const {
  const ServerEntry& entry = servers_[request.index()];
  return entry.confirmed && request.nonce() != 0 &&
         std::find(entry.past.begin(), entry.past.end(), request.nonce()) != entry.past.end();
}

void ServerTable::Register(const v1::RegisterServerRequest& request, Time now) {
  ServerEntry& entry = servers_[request.index()];
  if (entry.nonce != 0) {
    if (entry.past.size() == kPastMax) entry.past.erase(entry.past.begin());
    entry.past.push_back(entry.nonce);
  }
  // One that takes its index back.
  std::erase(entry.past, request.nonce());
  entry.claim.reset();
  entry.confirmed = false;
  entry.state = ServerState::kRegistered;
  entry.expected = true;
  entry.address = request.address();
  entry.local.set_address(request.local_address());
  entry.local.set_host(request.host());
  entry.nonce = request.nonce();
  entry.held_generation.reset();
  if (request.has_held_generation()) entry.held_generation = request.held_generation();
  entry.seen = now;
}

void ServerTable::Claim(const v1::RegisterServerRequest& request) {
  servers_[request.index()].claim = request;
}

std::optional<v1::RegisterServerRequest> ServerTable::TakeClaim(uint32_t index, uint64_t nonce) {
  std::optional<v1::RegisterServerRequest>& claim = servers_[index].claim;
  if (!claim || claim->nonce() != nonce) return std::nullopt;
  return std::exchange(claim, std::nullopt);
}

void ServerTable::Remove(uint32_t index) {
  ServerEntry& entry = servers_[index];
  entry.state = ServerState::kRemoved;
  entry.expected = false;
  entry.nonce = 0;
  entry.past.clear();
  entry.claim.reset();
  entry.held_generation.reset();
}

bool ServerTable::Seen(uint32_t index, Time now) {
  ServerEntry& entry = servers_[index];
  entry.seen = now;
  if (entry.state != ServerState::kLost) return false;
  entry.state = ServerState::kRegistered;
  return true;
}

void ServerTable::MarkAllUnready() {
  for (ServerEntry& entry : servers_) {
    if (entry.state == ServerState::kReady) entry.state = ServerState::kRegistered;
  }
}

std::vector<uint32_t> ServerTable::Expire(Time now) {
  std::vector<uint32_t> lost;
  for (uint32_t i = 0; i < size(); ++i) {
    ServerEntry& entry = servers_[i];
    if (!entry.here() || now - entry.seen <= lease_) continue;
    entry.state = ServerState::kLost;
    lost.push_back(i);
  }
  return lost;
}

void ServerTable::Forgive(Time now) {
  for (ServerEntry& entry : servers_) entry.seen = now;
}

std::vector<uint32_t> ServerTable::Missing() const {
  std::vector<uint32_t> missing;
  for (uint32_t i = 0; i < wanted_; ++i) {
    if (servers_[i].expected && !servers_[i].here()) missing.push_back(i);
  }
  return missing;
}

std::vector<uint32_t> ServerTable::Unready() const {
  std::vector<uint32_t> unready;
  for (uint32_t i = 0; i < wanted_; ++i) {
    const ServerEntry& entry = servers_[i];
    if (entry.expected && entry.state != ServerState::kReady) unready.push_back(i);
  }
  return unready;
}

std::vector<uint32_t> ServerTable::Absent() const {
  std::vector<uint32_t> absent;
  for (uint32_t i = 0; i < wanted_; ++i) {
    if (!servers_[i].here()) absent.push_back(i);
  }
  return absent;
}

std::set<uint32_t> ServerTable::Here() const {
  std::set<uint32_t> here;
  for (uint32_t i = 0; i < size(); ++i) {
    if (servers_[i].here()) here.insert(i);
  }
  return here;
}

bool ServerTable::OnOneHost() const {
  std::set<std::string> hosts;
  for (const ServerEntry& entry : servers_) {
    if (entry.here()) hosts.insert(entry.local.host());
  }
  return hosts.size() == 1 && !hosts.begin()->empty();
}

bool ServerTable::AllShutDown() const {
  return std::all_of(servers_.begin(), servers_.end(),
                     [](const ServerEntry& entry) { return entry.shut_down || !entry.here(); });
}

}  // namespace leeway
