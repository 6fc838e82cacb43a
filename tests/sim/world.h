// One schedule, from a seed: servers, workers, coordinator, launcher and fate. First everything may
// fail, then all is well, and the job must come to its end.
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

  // The first broken promise; empty if none is.
  const std::string& Run();
  const Context& context() const { return context_; }

 private:
  // Of a rank: the newest process, and one that it has replaced without ending it.
  struct Rank {
    std::optional<SimWorker> worker;
    std::optional<SimWorker> old;
    // The launcher will start one.
    bool start_due = false;
    bool gone = false;
    bool left = false;
  };
  // A server process beside its data plane.
  struct ServerProcess {
    uint32_t boot = 0;
    bool down = false;
    bool registered = false;
    bool joined = false;
    bool shut_down = false;
    // In order, while the job goes on.
    bool ended = false;
    // The last command carried out, and how it went: a repeated one is only answered again.
    uint32_t commands_done = 0;
    absl::StatusCode last_code = absl::StatusCode::kOk;
    // What stands for the file that was written for it.
    uint64_t last_part = 0;
    // Parts of cuts of which the coordinator may not have heard.
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
  // `lasts`: how long what happens to the node; 0: a moment of the draw.
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
  // For so long; 0: a moment of the draw.
  void Pause(NodeId node, Micros lasts);
  void Partition();
  void Deafen();
  void Hush();
  // 0: it comes back at a moment of the draw.
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
  // By shard: what survives every process.
  SimHost::Disks disks_;
  std::array<ServerProcess, kServersMax> processes_;
  std::array<Rank, kRanksMax> ranks_;
  std::array<Micros, kNodes> paused_until_{};
  std::unique_ptr<SimControl> control_;
  uint32_t lives_ = 0;
};

}  // namespace leeway::sim
