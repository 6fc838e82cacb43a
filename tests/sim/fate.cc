// The faults of a world's processes, which are drawn in advance, and the launcher that restarts the
// processes.
#include "tests/sim/world.h"

namespace leeway::sim {

void World::Plan(Micros at, Kind kind, NodeId node, Micros lasts) {
  Message event = Timer(kind, node);
  event.clock = static_cast<uint64_t>(lasts);
  context_.Push(at, event);
}

Micros World::Between(Micros from, Micros to) {
  return from + static_cast<Micros>(context_.draws.NextU32() % static_cast<uint64_t>(to - from));
}

void World::PlanFaults() {
  const Faults& faults = context_.faults;
  const auto when = [&] {
    return static_cast<Micros>(context_.draws.NextU32() % static_cast<uint64_t>(faults.heal_at));
  };
  const auto whom = [&] {
    return static_cast<NodeId>(context_.draws.NextU32() % context_.shape.workers);
  };
  for (uint32_t rank = 0; rank < context_.shape.workers; ++rank) {
    const bool late = faults.late_start && context_.draws.NextU32() % 2 == 0;
    ranks_[rank].start_due = true;
    Plan(late ? when() : 0, Kind::kStart, static_cast<NodeId>(rank));
  }
  for (uint32_t i = 0; i < faults.crashes; ++i) Plan(when(), Kind::kCrash, whom());
  for (uint32_t i = 0; i < faults.replacements; ++i) Plan(when(), Kind::kReplace, whom());
  for (uint32_t i = 0; i < faults.leaves; ++i) Plan(when(), Kind::kLeaveEarly, whom());
  for (uint32_t i = 0; i < faults.pauses; ++i) {
    const NodeId any = static_cast<NodeId>(context_.draws.NextU32() % kNodes);
    Plan(when(), Kind::kPause, any);
  }
  for (uint32_t i = 0; i < faults.partitions; ++i) Plan(when(), Kind::kPartition, 0);
  for (uint32_t i = 0; i < faults.server_kills; ++i) {
    const uint32_t server = context_.draws.NextU32() % context_.shape.servers;
    Plan(when(), Kind::kKillServer, static_cast<NodeId>(kServer0 + server));
  }
  for (uint32_t i = 0; i < faults.coordinator_kills; ++i) {
    Plan(when(), Kind::kKillCoordinator, kCoordinator);
  }
  if (faults.relay) PlanRelay();
  if (faults.belated) PlanBelated();
  if (faults.stop) Plan(when(), Kind::kStopJob, kCoordinator);
  const uint32_t least = context_.shape.replicas, most = context_.shape.servers;
  for (uint32_t i = 0; i < faults.resizes; ++i) {
    const uint32_t servers = least + context_.draws.NextU32() % (most - least + 1);
    Plan(when(), Kind::kResize, kCoordinator, servers);
  }
  for (uint32_t i = 0; i < faults.drains; ++i) {
    const uint32_t server = context_.draws.NextU32() % context_.shape.servers;
    Plan(when(), Kind::kDrain, static_cast<NodeId>(kServer0 + server), 0);
  }
  if (faults.deaf) Plan(when(), Kind::kDeaf, kCoordinator);
  if (faults.hush) Plan(when(), Kind::kHush, kCoordinator);
  Plan(faults.heal_at, Kind::kHeal, 0);
}

void World::PlanRelay() {
  const uint32_t first = context_.draws.NextU32() % 3;
  const auto server = [&](uint32_t i) { return static_cast<NodeId>(kServer0 + (first + i) % 3); };
  const Micros begins = Between(800, 3000);
  const Micros wakes = begins + Between(14'000, 24'000);
  Plan(begins, Kind::kPause, server(0), wakes - begins);
  Plan(Between(begins + 9500, wakes - 500), Kind::kKillServer, server(1), Between(1, 1500));
  Plan(wakes + Between(150, 1500), Kind::kKillServer, server(2), Between(1, 12'000));
}

// A worker stands still all the while and keeps the others from going far. So the delayed messages
// are not older than what the others do meanwhile.
void World::PlanBelated() {
  const auto owner =
      static_cast<NodeId>(kServer0 + context_.draws.NextU32() % context_.shape.servers);
  const auto worker = static_cast<NodeId>(context_.draws.NextU32() % context_.shape.workers);
  const Micros begins = Between(1000, 6000);
  const Micros dies = begins + Between(300, 1200);
  const Micros arrives = dies + Between(8000, 24'000);
  context_.Delay({owner, begins, dies, arrives});
  Plan(dies, Kind::kKillServer, owner, Between(1, 1500));
  Plan(dies, Kind::kPause, worker, arrives - dies + 4000);
  Plan(arrives + Between(1, 1000), Kind::kKillServer, owner, Between(1, 4000));
}

void World::Fate(const Message& event) {
  const uint32_t rank = event.to;
  switch (event.kind) {
    case Kind::kStart:
      return StartRank(rank);
    case Kind::kCrash:
      return Crash(rank);
    case Kind::kReplace:
      return Replace(rank);
    case Kind::kLeaveEarly:
      if (ranks_[rank].worker && !context_.shape.sync()) ranks_[rank].worker->AskToLeave();
      return;
    case Kind::kPause:
      return Pause(event.to, static_cast<Micros>(event.clock));
    case Kind::kPartition:
      return Partition();
    case Kind::kDeaf:
      return Deafen();
    case Kind::kHush:
      return Hush();
    case Kind::kHeal:
      return Heal();
    case Kind::kKillServer:
      return KillServer(event.to - kServer0, static_cast<Micros>(event.clock));
    case Kind::kDrain:
      return Drain(event);
    case Kind::kStartServer:
      return StartServer(event.to - kServer0);
    case Kind::kKillCoordinator:
      return KillCoordinator();
    default:
      return;
  }
}

void World::Crash(uint32_t rank) {
  Rank& place = ranks_[rank];
  if (!place.worker) return;
  // The job waits until each worker has come once. A worker that goes for good after that is always
  // the last rank.
  const bool last = rank + 1 == context_.shape.workers;
  place.gone = context_.faults.gone && last && place.worker->registered();
  place.worker.reset();
  StartLater(rank);
}

void World::StartLater(uint32_t rank) {
  Rank& place = ranks_[rank];
  if (place.start_due || place.gone || place.left) return;
  place.start_due = true;
  Plan(context_.now + kRestartAfter, Kind::kStart, static_cast<NodeId>(rank));
}

void World::StartRank(uint32_t rank) {
  Rank& place = ranks_[rank];
  place.start_due = false;
  if (place.worker || place.gone || place.left) return;
  place.worker.emplace(rank, ++lives_);
  place.worker->Start(context_);
}

// Starts a second process for a rank whose first process still runs, or stands still.
void World::Replace(uint32_t rank) {
  Rank& place = ranks_[rank];
  if (!place.worker || place.left) return;
  place.old.reset();
  place.old.emplace(*place.worker);
  place.worker.reset();
  if (context_.Chance(128)) {
    place.old->Pause(context_.now + context_.draws.NextU32() % 15'000);
  }
  StartRank(rank);
}

void World::Pause(NodeId node, Micros lasts) {
  constexpr Micros kMost = 15'000;
  if (lasts == 0) lasts = 1 + context_.draws.NextU32() % kMost;
  const Micros until = context_.now + lasts;
  if (node >= kServer0) {
    paused_until_[node] = until;
  } else if (ranks_[node].worker) {
    ranks_[node].worker->Pause(until);
  }
}

void World::Partition() {
  const auto from = static_cast<NodeId>(context_.draws.NextU32() % kNodes);
  const auto to = static_cast<NodeId>(context_.draws.NextU32() % kNodes);
  const Micros until = context_.now + context_.draws.NextU32() % 15'000;
  // The server's connections are cut, but it lives. A coordinator that checks this finds it alive.
  const bool hint =
      from >= kServer0 && from < kServer0 + context_.shape.servers && to == kCoordinator;
  if (hint && context_.bug == Bug::kHintBelieved) {
    context_.SeeGone(from - kServer0, context_.boots[from - kServer0]);
  }
  context_.Cut(from, to, until);
  if (context_.draws.NextU32() & 1) context_.Cut(to, from, until);
}

void World::Deafen() {
  const Micros until = context_.now + Between(kLease, 3 * kLease);
  for (NodeId from = 0; from < kCoordinator; ++from) context_.Cut(from, kCoordinator, until);
}

void World::Hush() {
  const Micros lasts = Between(kLease, 3 * kLease);
  for (NodeId node = 0; node < kCoordinator; ++node) {
    if (node != kServer0) Pause(node, lasts);
  }
}

// The server ends once it may, like a process that got SIGTERM. It stays if that takes too long.
void World::Drain(const Message& event) {
  constexpr uint64_t kAsksMax = 40;
  constexpr Micros kAskAgain = 100;
  const uint32_t index = event.to - kServer0;
  if (processes_[index].down || processes_[index].shut_down) return;
  if (control_->Drain(context_, index, processes_[index].boot)) {
    ++context_.counts.drained;
    return KillServer(index, Between(1, 1500));
  }
  const uint64_t asked = event.clock + 1;
  if (asked < kAsksMax) {
    Plan(context_.now + kAskAgain, Kind::kDrain, event.to, static_cast<Micros>(asked));
  }
}

// Everything but the server's checkpoints is lost.
void World::KillServer(uint32_t index, Micros comes_after) {
  ServerProcess& process = processes_[index];
  if (process.down || process.shut_down) return;
  ++context_.counts.server_kills;
  context_.SeeGone(index, process.boot);
  const uint32_t boot = process.boot + 1;
  context_.boots[index] = boot;
  process = ServerProcess();
  process.boot = boot;
  process.down = true;
  const auto node = static_cast<NodeId>(kServer0 + index);
  paused_until_[node] = 0;
  if (comes_after == 0) comes_after = context_.draws.NextU32() % 12'000;
  Plan(context_.now + comes_after, Kind::kStartServer, node);
}

// The server has ended in order. Its launcher starts another process when the server is wanted
// again.
void World::EndServer(uint32_t index) {
  ++context_.counts.servers_removed;
  const uint32_t boot = processes_[index].boot + 1;
  context_.boots[index] = boot;
  processes_[index] = ServerProcess();
  processes_[index].boot = boot;
  processes_[index].down = processes_[index].ended = true;
  Plan(context_.now + kRestartAfter, Kind::kStartServer, static_cast<NodeId>(kServer0 + index));
}

void World::StartServer(uint32_t index) {
  if (processes_[index].ended && !control_->Wants(context_, index)) {
    return Plan(context_.now + kRestartAfter, Kind::kStartServer,
                static_cast<NodeId>(kServer0 + index));
  }
  processes_[index].ended = false;
  processes_[index].down = false;
  servers_[index].emplace(index, context_.shape, processes_[index].boot);
  ServerLoop(index);
}

void World::KillCoordinator() {
  if (control_->over()) return;
  ++context_.counts.coordinator_kills;
  paused_until_[kCoordinator] = 0;
  control_->Restart(context_);
  // The coordinator is part of server 0's process.
  if (context_.shape.replicas > 1) KillServer(0);
}

void World::Heal() {
  context_.healed = true;
  for (uint32_t rank = 0; rank < context_.shape.workers; ++rank) {
    if (!ranks_[rank].worker) StartLater(rank);
  }
}

}  // namespace leeway::sim
