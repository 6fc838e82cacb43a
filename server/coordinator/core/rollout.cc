#include "server/coordinator/core/rollout.h"

namespace leeway {

void Rollout::Configure(const v1::ConfigureRequest& request, const ServerTable& servers,
                        Time deadline) {
  configuring_ = true;
  ++round_;
  for (const uint32_t i : servers.Here()) {
    commands_.Push(ConfigureServer{i, round_, request, deadline});
  }
}

void Rollout::Begin(const std::set<uint32_t>& first, const ServerTable& servers) {
  // Servers that were first in an earlier epoch and have not answered yet are first in this epoch,
  // too.
  std::erase_if(first_, [&](uint32_t server) { return !servers[server].here(); });
  first_.insert(first.begin(), first.end());
  heard_.clear();
  ++round_;
  skipped_.clear();
  for (uint32_t i = 0; i < servers.size(); ++i) {
    if (!first_.empty() && first_.count(i) == 0) skipped_.insert(i);
  }
}

void Rollout::Send(const v1::ConfigureRequest& request, const ServerTable& servers, Time deadline) {
  for (uint32_t i = 0; i < servers.size(); ++i) {
    if (!servers[i].here() || skipped_.count(i) > 0) continue;
    commands_.Push(ConfigureServer{i, round_, request, deadline});
  }
}

bool Rollout::Heard(uint32_t server) {
  if (first_.erase(server) == 0) return false;
  heard_.insert(server);
  if (!first_.empty()) return false;
  skipped_ = heard_;
  return true;
}

}  // namespace leeway
