#include "tests/sim/world.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace leeway::sim {
namespace {

constexpr Micros kServerLoopEvery = 2000;

Message Timer(Kind kind, NodeId node) {
  Message timer;
  timer.kind = kind;
  timer.from = timer.to = node;
  return timer;
}

}  // namespace

World::World(uint64_t seed, const Wanted& wanted, std::FILE* trace)
    : context_(DrawShape(seed, wanted), DrawFaults(seed, DrawShape(seed, wanted)), wanted.bug,
               seed),
      trace_(trace) {
  Shape served = context_.shape;
  if (context_.bug == Bug::kLaxStaleness) ++served.staleness;
  for (uint32_t i = 0; i < served.servers; ++i) servers_[i].emplace(i, served, 0);
  control_ = served.whole ? MakeWholeControl(context_) : MakeLightControl(context_);
  for (uint32_t i = 0; served.whole && i < served.servers; ++i) ServerLoop(i);
  PlanFaults();
}

// ---- fate

void World::Plan(Micros at, Kind kind, NodeId node) { context_.Push(at, Timer(kind, node)); }

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
  if (faults.stop) Plan(when(), Kind::kStopJob, kCoordinator);
  Plan(faults.heal_at, Kind::kHeal, 0);
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
      return Pause(event.to);
    case Kind::kPartition:
      return Partition();
    case Kind::kHeal:
      return Heal();
    case Kind::kKillServer:
      return KillServer(event.to - kServer0);
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
  // The job waits for everybody to come once; of those who then go for good the last rank is the
  // example.
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

// A second process for a rank whose first one still runs, or stands still.
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

void World::Pause(NodeId node) {
  Micros most = 15'000;
  // A server that is silent for longer than its lease takes the job back, where nobody has what it
  // has.
  const bool alone = context_.shape.whole && context_.shape.replicas < 2;
  if (alone && node >= kServer0 && node < kCoordinator) most = kLease / 3;
  const Micros until = context_.now + 1 + context_.draws.NextU32() % most;
  if (node >= kServer0) {
    paused_until_[node] = until;
  } else if (ranks_[node].worker) {
    ranks_[node].worker->Pause(until);
  }
}

void World::Partition() {
  const auto from = static_cast<NodeId>(context_.draws.NextU32() % kNodes);
  const auto to = static_cast<NodeId>(context_.draws.NextU32() % kNodes);
  const bool alone = context_.shape.whole && context_.shape.replicas < 2;
  const bool fatal = alone && from >= kServer0 && to == kCoordinator;
  const Micros until = context_.now + context_.draws.NextU32() % (fatal ? kLease / 3 : 15'000);
  context_.Cut(from, to, until);
  if (context_.draws.NextU32() & 1) context_.Cut(to, from, until);
}

// All but its checkpoints is lost.
void World::KillServer(uint32_t index) {
  ServerProcess& process = processes_[index];
  if (process.down || process.shut_down) return;
  ++context_.counts.server_kills;
  const uint32_t boot = process.boot + 1;
  process = ServerProcess();
  process.boot = boot;
  process.down = true;
  const auto node = static_cast<NodeId>(kServer0 + index);
  paused_until_[node] = 0;
  Plan(context_.now + context_.draws.NextU32() % 12'000, Kind::kStartServer, node);
}

void World::StartServer(uint32_t index) {
  processes_[index].down = false;
  servers_[index].emplace(index, context_.shape, processes_[index].boot);
  ServerLoop(index);
}

void World::KillCoordinator() {
  if (control_->over()) return;
  ++context_.counts.coordinator_kills;
  paused_until_[kCoordinator] = 0;
  control_->Restart(context_);
  // It is part of server 0's process.
  if (context_.shape.replicas > 1) KillServer(0);
}

void World::Heal() {
  context_.healed = true;
  for (uint32_t rank = 0; rank < context_.shape.workers; ++rank) {
    if (!ranks_[rank].worker) StartLater(rank);
  }
}

// ---- processes

SimWorker* World::Find(uint32_t rank, uint32_t life) {
  Rank& place = ranks_[rank];
  if (place.worker && place.worker->life() == life) return &*place.worker;
  if (place.old && place.old->life() == life) return &*place.old;
  return nullptr;
}

// Ends of processes, as the launcher sees them.
void World::Reap(uint32_t rank) {
  Rank& place = ranks_[rank];
  for (std::optional<SimWorker>* each : {&place.old, &place.worker}) {
    if (!*each || (*each)->end() == SimWorker::End::kNone) continue;
    const SimWorker::End end = (*each)->end();
    each->reset();
    if (end == SimWorker::End::kLeft) {
      place.left = true;
    } else if (!place.worker && !place.old) {
      StartLater(rank);
    }
  }
}

void World::ToWorker(const Message& event) {
  SimWorker* worker = Find(event.rank, event.life);
  if (worker == nullptr) return;
  if (event.kind == Kind::kReply) worker->OnReply(context_, event);
  if (event.kind == Kind::kHeartbeatReply) worker->OnHeartbeatReply(context_, event);
  if (event.kind == Kind::kWorkerTick) worker->OnTick(context_);
  Reap(event.rank);
}

void World::ToServer(const Message& event) {
  ServerProcess& process = processes_[event.to - kServer0];
  if (process.down && event.kind == Kind::kReplicate) return context_.Break(event);
  if (process.down) return;
  SimHost& server = *servers_[event.to - kServer0];
  switch (event.kind) {
    case Kind::kReplicate:
      return server.OnReplicate(context_, event);
    case Kind::kReplicated:
      return server.OnReplicated(context_, event);
    case Kind::kBroken:
      return server.OnBroken(context_, event);
    case Kind::kApplied:
      return server.OnApplied(context_, event);
    case Kind::kServerTick:
      return server.OnTick(context_);
    case Kind::kCommand:
      return Carry(event);
    case Kind::kServerRegister:
      if (event.boot == process.boot) ServerLoop(event.to - kServer0);
      return;
    case Kind::kReply:
      if (event.boot != process.boot) return;
      // A coordinator that was started again knows nobody.
      if (event.attempt == 0) process.registered = event.code == absl::StatusCode::kOk;
      if (event.code == absl::StatusCode::kAlreadyExists) process.shut_down = true;
      // Taken for one that was replaced: it ends, and its launcher begins another.
      if (event.code == absl::StatusCode::kAborted) return KillServer(event.to - kServer0);
      // Who does not know the placement yet may not count on its lease.
      if (event.attempt == 2 && server.IsCurrent(context_)) {
        server.OnHeard(static_cast<Micros>(event.stop_at));
      }
      if (event.attempt == 1) {
        std::erase_if(process.unsaid, [&](const ServerProcess::Part& part) {
          return part.shard == event.block && part.clock == event.clock &&
                 part.generation == event.generation;
        });
      }
      return;
    default:
      return server.OnRequest(context_, event);
  }
}

void World::Carry(const Message& command) {
  const uint32_t index = command.to - kServer0;
  ServerProcess& process = processes_[index];
  if (command.boot != process.boot) return;
  SimHost& server = *servers_[index];
  if (command.sequence > process.commands_done) {
    absl::StatusCode code = absl::StatusCode::kOk;
    if (command.order == Order::kSetLive) {
      server.OnSetLive(context_, command.rank, command.flag);
    }
    if (command.order == Order::kConfigure) {
      if (server.generation() < command.generation) process.unsaid.clear();
      code = server.Configure(context_, command, disks_);
    }
    if (command.order == Order::kSave) {
      code = server.Hold(context_, command, disks_);
    }
    if (command.order == Order::kShutdown) process.shut_down = true;
    // The link asks again.
    if (code == absl::StatusCode::kUnavailable) return;
    process.commands_done = command.sequence;
    process.last_code = code;
  }
  Message done = command;
  done.kind = Kind::kCommandDone;
  std::swap(done.from, done.to);
  if (command.sequence == process.commands_done) done.code = process.last_code;
  if (command.order == Order::kSave && done.code == absl::StatusCode::kOk) {
    done.value = SimServer::HashOf(disks_[command.rank][command.clock]);
  }
  context_.Send(done);
}

// Whole world: registers, then heartbeats, and tells of cuts until that is heard.
void World::ServerLoop(uint32_t index) {
  ServerProcess& process = processes_[index];
  if (process.shut_down || process.down) return;
  const auto node = static_cast<NodeId>(kServer0 + index);
  servers_[index]->OnTick(context_);
  for (uint32_t number = 0; number < context_.shape.servers; ++number) {
    SimServer* const shard = servers_[index]->shard(number);
    while (const auto cut = shard == nullptr ? std::nullopt : shard->TakeCompleteCut()) {
      shard->Write(*cut, disks_[number]);
      process.unsaid.push_back(
          {number, *cut, SimServer::HashOf(disks_[number][*cut]), servers_[index]->generation()});
    }
  }
  Message message =
      Timer(process.registered ? Kind::kServerHeartbeat : Kind::kServerRegister, node);
  message.to = kCoordinator;
  message.boot = process.boot;
  message.stop_at = static_cast<uint64_t>(context_.LocalNow(node));
  servers_[index]->Fill(context_, message);
  context_.Send(message);
  message.kind = Kind::kShardSaved;
  for (const ServerProcess::Part& part : process.unsaid) {
    message.block = static_cast<uint8_t>(part.shard);
    message.clock = part.clock;
    message.value = part.hash;
    message.generation = part.generation;
    context_.Send(message);
  }
  Message again = Timer(Kind::kServerRegister, node);
  again.boot = process.boot;
  context_.After(node, kServerLoopEvery, again);
}

// ---- one event after the other

bool World::IsPaused(const Message& event) {
  Micros until = paused_until_[event.to];
  if (event.to < kServer0) {
    const SimWorker* worker = Find(event.rank, event.life);
    until = worker == nullptr ? 0 : worker->paused_until();
  }
  if (context_.now >= until) return false;
  context_.Push(until, event);
  return true;
}

void World::Dispatch(const Message& event) {
  if (event.kind >= Kind::kStart && event.kind != Kind::kStopJob) {
    if (trace_ != nullptr) Trace(event);
    return Fate(event);
  }
  if (IsPaused(event)) return;
  if (trace_ != nullptr) Trace(event);
  if (event.to < kServer0) return ToWorker(event);
  if (event.to < kCoordinator) return ToServer(event);
  if (event.kind == Kind::kCoordinatorTick) return control_->OnTick(context_);
  control_->OnMessage(context_, event);
}

const std::string& World::Run() {
  const Micros end =
      context_.faults.heal_at + (context_.shape.whole ? kWholeFinishWithin : kFinishWithin);
  while (context_.violation.empty() && !Done()) {
    if (context_.now > end || context_.empty()) {
      CheckEnd();
      context_.Violate("after healing everything completes", [&] {
        std::string text = control_->Where(context_);
        for (const Rank& rank : ranks_) {
          if (rank.worker) absl::StrAppend(&text, "; ", rank.worker->Where());
        }
        return text;
      });
      break;
    }
    ++context_.counts.events;
    const uint32_t event = context_.Pop();
    Dispatch(context_.At(event));
    context_.GiveBack(event);
  }
  CheckEnd();
  if (trace_ != nullptr && !context_.violation.empty()) {
    std::fprintf(trace_, "%9lld VIOLATED %s\n", static_cast<long long>(context_.now),
                 context_.violation.c_str());
  }
  return context_.violation;
}

bool World::Done() const {
  if (context_.shape.whole) return control_->over();
  for (uint32_t rank = 0; rank < context_.shape.workers; ++rank) {
    if (!ranks_[rank].left && !ranks_[rank].gone) return false;
  }
  return control_->over();
}

void World::CheckEnd() {
  if (!context_.violation.empty()) return;
  for (auto& server : servers_) {
    for (uint32_t number = 0; number < context_.shape.servers; ++number) {
      if (server && server->shard(number)) server->shard(number)->CheckAtEnd(context_);
    }
  }
  if (!Done()) return;
  if (const std::string why = control_->Failure(context_); !why.empty()) {
    context_.Violate("no fault that heals makes a job fail", [&] { return why; });
  }
  const bool whole = !context_.shape.whole;
  for (uint32_t block = 0; whole && block < context_.shape.blocks; ++block) {
    const uint32_t shard = block % context_.shape.servers;
    const uint64_t version = servers_[shard]->shard(shard)->version(block);
    const uint64_t sum = uint64_t{context_.shape.workers} * context_.shape.clocks;
    const bool right = context_.shape.sync()  ? version == context_.shape.clocks
                       : context_.faults.gone ? true
                                              : version >= sum;
    if (right) continue;
    context_.Violate("after healing everything completes",
                     [&] { return absl::StrCat("block ", block, " is at version ", version); });
  }
}

void World::Trace(const Message& event) {
  const bool idle = event.kind == Kind::kWorkerTick || event.kind == Kind::kCoordinatorTick ||
                    event.kind == Kind::kServerTick;
  if (idle) return;
  std::fprintf(trace_, "%9lld %s\n", static_cast<long long>(context_.now), Describe(event).c_str());
}

}  // namespace leeway::sim
