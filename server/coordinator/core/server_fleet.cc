#include "server/coordinator/core/server_fleet.h"

#include <set>

#include "common/status.h"
#include "config/shards.h"
#include "config/topology.h"

namespace leeway {
namespace {

ServerTable StartTable(const JobFacts& facts) {
  const auto& before = facts.options().before;
  const uint32_t most = ServersMost(facts.job());
  ServerTable table(most, ServersOf(facts.job()), facts.lease());
  table.Want(facts.start_servers());
  if (facts.StepsBefore() == 0) return table;
  // Expects the servers that the previous coordinator had when it was killed, except server 0,
  // which is this process.
  for (uint32_t i = 1; i < most; ++i) {
    const int index = static_cast<int>(i);
    table.Expect(i, index < before->server_nonces_size() && before->server_nonces(index) != 0);
  }
  return table;
}

}  // namespace

ServerFleet::ServerFleet(const JobFacts& facts, Commands& commands)
    : commands_(commands),
      table_(StartTable(facts)),
      processes_(ServersMost(facts.job())),
      reach_(facts.options().network, facts.job().workers().count()) {}

absl::Status ServerFleet::Check(const v1::RegisterServerRequest& request,
                                const Membership& ranks) const {
  RETURN_IF_ERROR(processes_.Check(request));
  return reach_.CheckServer(request, {table_, processes_}, ranks);
}

absl::Status ServerFleet::CheckWorker(const std::string& who, const std::string& network) const {
  return Reachability::CheckPeer(who, network, {table_, processes_});
}

bool ServerFleet::Known(const v1::RegisterServerRequest& request) const {
  const ServerState state = table_[request.index()].state;
  const bool none = state == ServerState::kWaiting || state == ServerState::kRemoved;
  return !none && processes_.Same(request);
}

void ServerFleet::Register(const v1::RegisterServerRequest& request, Time now) {
  const uint32_t index = request.index();
  table_.Register(index, now);
  processes_.Register(request);
  commands_.Push(ConnectServer{index, request.address(), request.nonce()});
  commands_.Emit({.name = "server_registered", .server = index, .message = request.address()});
}

bool ServerFleet::Seen(uint32_t index, Time now) {
  if (!table_.Seen(index, now)) return false;
  commands_.Push(ConnectServer{index, processes_[index].address, processes_[index].nonce});
  return true;
}

void ServerFleet::Drain(uint32_t index) {
  table_.Drain(index);
  commands_.Emit(
      {.name = "server_draining", .server = index, .message = processes_[index].address});
}

void ServerFleet::Remove(uint32_t index) {
  table_.Remove(index);
  processes_.Forget(index);
  commands_.Push(DisconnectServer{index});
  commands_.Emit({.name = "server_removed", .server = index, .message = processes_[index].address});
}

bool ServerFleet::MayBeGone(uint32_t index, uint64_t nonce) const {
  return processes_.Holds(index, nonce) && table_[index].here() && !processes_[index].seemed_gone;
}

void ServerFleet::TakeForGone(uint32_t index) {
  table_.Lose(index);
  processes_.TakeForGone(index);
  Disconnect(index);
}

void ServerFleet::Disconnect(uint32_t index) {
  commands_.Push(DisconnectServer{index});
  commands_.Emit({.name = "server_lost", .server = index, .message = processes_[index].address});
}

bool ServerFleet::OnOneHost() const {
  std::set<std::string> hosts;
  for (const uint32_t i : table_.Here()) hosts.insert(processes_[i].local.host());
  return hosts.size() == 1 && !hosts.begin()->empty();
}

void ServerFleet::Fill(v1::JobStatus& status) const {
  for (uint32_t i = 0; i < table_.size(); ++i) {
    if (!table_.Wanted(i) && table_[i].state == ServerState::kWaiting) continue;
    v1::ServerStatus& server = *status.add_servers();
    server.set_index(i);
    server.set_address(processes_[i].address);
    const bool leaves = table_[i].here() && table_[i].draining;
    server.set_state(leaves ? "draining" : ServerStateName(table_[i].state));
    server.set_pid(processes_[i].pid);
    *server.mutable_load() = table_[i].load;
  }
  status.set_servers_wanted(table_.wanted());
}

}  // namespace leeway
