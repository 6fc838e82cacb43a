#include "server/coordinator/core/server_table.h"

#include <algorithm>

namespace leeway {

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

void ServerTable::Register(uint32_t index, Time now) {
  ServerEntry& entry = servers_[index];
  entry.state = ServerState::kRegistered;
  entry.expected = true;
  entry.draining = false;
  entry.seen = now;
  ++entry.changes;
}

void ServerTable::Remove(uint32_t index) {
  servers_[index].state = ServerState::kRemoved;
  servers_[index].expected = false;
  ++servers_[index].changes;
}

void ServerTable::Lose(uint32_t index) {
  servers_[index].state = ServerState::kLost;
  ++servers_[index].changes;
}

bool ServerTable::Seen(uint32_t index, Time now) {
  ServerEntry& entry = servers_[index];
  entry.seen = now;
  if (entry.state != ServerState::kLost) return false;
  entry.state = ServerState::kRegistered;
  ++entry.changes;
  return true;
}

void ServerTable::MarkAllUnready() {
  for (ServerEntry& entry : servers_) {
    if (entry.state == ServerState::kReady) entry.state = ServerState::kRegistered;
  }
}

std::vector<uint32_t> ServerTable::Expire(Time now) {
  std::vector<uint32_t> lost;
  for (uint32_t i = 1; i < size(); ++i) {
    const ServerEntry& entry = servers_[i];
    if (!entry.here() || now - entry.seen <= lease_) continue;
    Lose(i);
    lost.push_back(i);
  }
  return lost;
}

void ServerTable::CountSilent(Time now, Silence& silence) const {
  for (uint32_t i = 1; i < size(); ++i) {
    if (servers_[i].here()) silence.Count(now - servers_[i].seen, lease_);
  }
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

std::vector<uint32_t> ServerTable::Draining() const {
  std::vector<uint32_t> draining;
  for (uint32_t i = 0; i < size(); ++i) {
    if (servers_[i].here() && servers_[i].draining) draining.push_back(i);
  }
  return draining;
}

std::set<uint32_t> ServerTable::Here() const {
  std::set<uint32_t> here;
  for (uint32_t i = 0; i < size(); ++i) {
    if (servers_[i].here()) here.insert(i);
  }
  return here;
}

bool ServerTable::AllShutDown() const {
  return std::all_of(servers_.begin(), servers_.end(),
                     [](const ServerEntry& entry) { return entry.shut_down || !entry.here(); });
}

}  // namespace leeway
