// One schedule, which a seed determines: servers, workers, coordinator, launcher and faults. At
// first everything may fail; then all faults end, and the job must complete.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/control.h"
#include "tests/sim/host.h"
#include "tests/sim/worker.h"

namespace leeway::sim {

class World {
 public:
  World(uint64_t seed, const Wanted& wanted, std::FILE* trace = nullptr);

  // Runs the schedule. Returns the first broken promise; empty if every promise holds.
  const std::string& Run();
  const Context& context() const { return context_; }

 private:
  // The processes of a rank: the newest one, and one that it has replaced without ending it.
  struct Rank {
    std::optional<SimWorker> worker;
    std::optional<SimWorker> old;
    // The launcher will start a process.
    bool start_due = false;
    bool gone = false;
    bool left = false;
  };
  // The state of a server process, except for its data plane.
  struct ServerProcess {
    uint32_t boot = 0;
    bool down = false;
    bool registered = false;
    bool joined = false;
    bool shut_down = false;
    // It has ended in order, while the job goes on.
    bool ended = false;
    // The last command that was carried out, and its result: a repeated command is only answered
    // again.
    uint32_t commands_done = 0;
    absl::StatusCode last_code = absl::StatusCode::kOk;
    // A hash that stands for the file that was written for that command.
    uint64_t last_part = 0;
    // Parts of cuts that the coordinator may not have heard of.
    struct Part {
      uint32_t shard = 0;
      uint64_t clock = 0;
      uint64_t hash = 0;
      uint64_t generation = 0;
    };
    std::vector<Part> unsaid;
  };

  World(uint64_t seed, const Shape& shape, Bug bug, std::FILE* trace);
  void PlanFaults();
  void PlanRelay();
  void PlanBelated();
  // `lasts`: how long the fault lasts; 0: the length is drawn.
  void Plan(Micros at, Kind kind, NodeId node, Micros lasts = 0);
  Micros Between(Micros from, Micros to);
  void Dispatch(const Message& event);
  bool IsPaused(const Message& event);
  void ToServer(const Message& event);
  void ToWorker(const Message& event);
  void Fate(const Message& event);
  void Heard(const Message& reply);
  void Carry(const Message& command);
  void ServerLoop(uint32_t server);
  void StartRank(uint32_t rank);
  void StartLater(uint32_t rank);
  void Crash(uint32_t rank);
  void Replace(uint32_t rank);
  // `lasts`: how long; 0: the length is drawn.
  void Pause(NodeId node, Micros lasts);
  void Partition();
  void Deafen();
  void Hush();
  // A length of 0: the time of its return is drawn.
  void Drain(const Message& event);
  void KillServer(uint32_t server, Micros comes_after = 0);
  void EndServer(uint32_t server);
  void StartServer(uint32_t server);
  void KillCoordinator();
  void Heal();
  void Reap(uint32_t rank);
  SimWorker* Find(uint32_t rank, uint32_t life);
  bool Done() const;
  void CheckEnd();
  void Trace(const Message& event);

  Context context_;
  std::FILE* const trace_;
  std::array<std::optional<SimHost>, kServersMax> servers_;
  // By shard: the files, which survive every process.
  SimHost::Disks disks_;
  std::array<ServerProcess, kServersMax> processes_;
  std::array<Rank, kRanksMax> ranks_;
  std::array<Micros, kNodes> paused_until_{};
  std::unique_ptr<SimControl> control_;
  uint32_t lives_ = 0;
};

}  // namespace leeway::sim
