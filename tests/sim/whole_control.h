// The whole CoordinatorCore in a simulated world, with what the service does around it: commands go
// out on ordered links, and writing a manifest takes time.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "server/coordinator/core/coordinator_core.h"
#include "tests/sim/control.h"

namespace leeway::sim {

class WholeControl : public SimControl {
 public:
  explicit WholeControl(Context& context);

  // Like ServerProcess::GoOnAfter: continues with its record and the newest checkpoint.
  void Restart(Context& context) override;
  void OnMessage(Context& context, const Message& message) override;
  void OnTick(Context& context) override;

  bool Drain(Context& context, uint32_t server, uint32_t boot) override;
  bool Wants(Context& context, uint32_t server) const override;
  bool over() const override { return core_->over(); }
  std::string Failure(Context& context) const override;
  std::string Where(Context& context) const override;

 private:
  // ---- from workers
  void Register(Context& context, const Message& message, Time now);
  void Heartbeat(Context& context, const Message& message, Time now);
  void StopAt(Context& context, const Message& message, Time now);
  void Leave(Context& context, const Message& message, Time now);
  void SaveState(Context& context, const Message& message, Time now);
  void CheckFence(Context& context, const Message& message, bool heard);

  void Resize(Context& context, uint32_t servers, Time now);

  // ---- from servers: whole_control_servers.cc
  void FromServer(Context& context, const Message& message, Time now);
  void ServerHeartbeat(Context& context, const Message& message, Time now);
  void ServerRegister(Context& context, const Message& message, Time now);
  void ShardSaved(Context& context, const Message& message, Time now);
  void Held(Context& context, const Message& message, Time now);
  void Gone(Context& context, const Message& message, Time now);
  void CommandDone(Context& context, const Message& message, Time now);
  void ManifestDone(Context& context, const Message& message, Time now);
  void Wake(Context& context, Time now);

  // ---- what the core wants done: whole_control_commands.cc
  void Carry(Context& context);
  void Do(Context& context, const ConfigureServer& command);
  void Do(Context& context, const ConnectServer& command);
  void Do(Context& context, const DisconnectServer& command);
  void Do(Context& context, const WriteRecord& command);
  // Makes the record durable.
  void Keep(Context& context, const v1::CoordinatorRecord& record);
  void Do(Context& context, const SetLive& command);
  void Do(Context& context, const CommitSet& command);
  void Do(Context& context, const SaveAll& command);
  void Do(Context& context, const ShutdownServers& command);
  void Do(Context& context, const WriteManifest& command);
  void Do(Context& context, const Event& event);
  template <typename Other>
  void Do(Context&, const Other&) {}
  // Wakes the core at the time that it asks for.
  void SetAlarm(Context& context);
  // Checks that the job goes back only if something is lost, and that a server with a valid lease
  // keeps it.
  void CheckPatience(Context& context, const Event& event);
  // A bug on purpose: a silent server is believed to have ended.
  void BelieveSilence(Context& context);
  void CheckSet(Context& context, const CommitSet& command, uint64_t ranks);

  std::optional<CoordinatorCore> core_;
  // The record, which survives the process.
  v1::CoordinatorRecord record_;
  // A record that nothing depends on yet. It is written when there is time, and is lost with the
  // process.
  std::optional<v1::CoordinatorRecord> owed_;
  v1::CheckpointManifest manifest_;
  v1::Placement last_placement_;
  std::map<uint64_t, v1::CheckpointManifest> writing_;
  uint32_t boot_ = 0;
  std::optional<Time> alarm_;
  // By server: when it was last heard, and when all servers were last granted one more lease.
  std::array<Time, kServersMax> heard_{};
  std::optional<Time> extended_;
  // The server process that the coordinator has heard last.
  uint32_t speaker_ = 0;
  // Which ranks live, as the servers were told.
  std::array<bool, kRanksMax> live_;
};

}  // namespace leeway::sim
