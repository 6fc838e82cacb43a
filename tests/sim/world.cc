#include "tests/sim/world.h"

#include "absl/strings/str_cat.h"

namespace leeway::sim {
namespace {

constexpr Micros kServerLoopEvery = 2000;

}  // namespace

World::World(uint64_t seed, const Wanted& wanted, std::FILE* trace)
    : World(seed, DrawShape(seed, wanted), wanted.bug, trace) {}

World::World(uint64_t seed, const Shape& shape, Bug bug, std::FILE* trace)
    : context_(shape, DrawFaults(seed, shape), bug, seed), trace_(trace) {
  Shape served = context_.shape;
  if (context_.bug == Bug::kLaxStaleness) ++served.staleness;
  for (uint32_t i = 0; i < served.servers; ++i) servers_[i].emplace(i, served, 0);
  control_ = served.whole ? MakeWholeControl(context_) : MakeLightControl(context_);
  for (uint32_t i = 0; served.whole && i < served.servers; ++i) ServerLoop(i);
  PlanFaults();
}

// ---- processes

SimWorker* World::Find(uint32_t rank, uint32_t life) {
  Rank& place = ranks_[rank];
  if (place.worker && place.worker->life() == life) return &*place.worker;
  if (place.old && place.old->life() == life) return &*place.old;
  return nullptr;
}

// Ends processes, as the launcher sees it.
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
      if (event.boot == process.boot) Heard(event);
      return;
    default:
      return server.OnRequest(context_, event);
  }
}

// The coordinator has answered a server.
void World::Heard(const Message& reply) {
  ServerProcess& process = processes_[reply.to - kServer0];
  SimHost& server = *servers_[reply.to - kServer0];
  if (reply.answers == Kind::kHeld) return server.OnHeldHeard(context_, reply);
  if (reply.answers == Kind::kShardSaved) {
    std::erase_if(process.unsaid, [&](const ServerProcess::Part& part) {
      return part.shard == reply.block && part.clock == reply.clock &&
             part.generation == reply.generation;
    });
    return;
  }
  // A restarted coordinator knows no server.
  const bool joins = reply.answers == Kind::kServerRegister && reply.code == absl::StatusCode::kOk;
  if (joins && !process.joined) server.OnHeard(static_cast<Micros>(reply.stop_at));
  process.joined |= joins;
  if (reply.answers == Kind::kServerRegister || reply.code != absl::StatusCode::kOk) {
    process.registered = reply.code == absl::StatusCode::kOk;
  }
  if (reply.code == absl::StatusCode::kAlreadyExists && context_.shape.resizes) {
    return EndServer(reply.to - kServer0);
  }
  if (reply.code == absl::StatusCode::kAlreadyExists) process.shut_down = true;
  // The coordinator takes this process for one that was replaced: it ends, and its launcher starts
  // another.
  if (reply.code == absl::StatusCode::kAborted) return KillServer(reply.to - kServer0);
  // A server that does not know the current placement may not rely on its lease.
  const bool heard = reply.answers == Kind::kServerHeartbeat && reply.code == absl::StatusCode::kOk;
  if (heard && server.IsCurrent(reply.clock)) server.OnHeard(static_cast<Micros>(reply.stop_at));
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
    if (command.order == Order::kCommit) code = server.OnCommitted(context_, command);
    if (command.order == Order::kSave) {
      const absl::StatusOr<uint64_t> held = server.Hold(context_, command, disks_);
      code = held.status().code();
      process.last_part = held.value_or(0);
    }
    if (command.order == Order::kShutdown) process.shut_down = true;
    // The link sends the command again.
    if (code == absl::StatusCode::kUnavailable) return;
    process.commands_done = command.sequence;
    process.last_code = code;
  }
  Message done = ReplyTo(command, command.code);
  done.kind = Kind::kCommandDone;
  if (command.sequence == process.commands_done) done.code = process.last_code;
  if (command.order == Order::kSave && done.code == absl::StatusCode::kOk) {
    done.value = process.last_part;
  }
  context_.Send(done);
}

// Whole world: the server registers, sends heartbeats, and reports each part of a cut until the
// coordinator has heard it.
void World::ServerLoop(uint32_t index) {
  ServerProcess& process = processes_[index];
  if (process.shut_down || process.down) return;
  const auto node = static_cast<NodeId>(kServer0 + index);
  servers_[index]->OnTick(context_);
  for (uint32_t number = 0; number < context_.shape.servers; ++number) {
    SimServer* const shard = servers_[index]->shard(number);
    while (const auto cut = shard == nullptr ? std::nullopt : shard->TakeCompleteCut()) {
      const uint64_t part = shard->Write(*cut, disks_[number]);
      process.unsaid.push_back({number, *cut, part, servers_[index]->generation()});
    }
  }
  Message message =
      Timer(process.registered ? Kind::kServerHeartbeat : Kind::kServerRegister, node);
  message.to = kCoordinator;
  message.boot = process.boot;
  message.stop_at = static_cast<uint64_t>(context_.LocalNow(node));
  message.life = static_cast<uint32_t>(context_.counts.coordinator_kills);
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
  const bool asked = event.kind == Kind::kStopJob || event.kind == Kind::kResize;
  if (event.kind >= Kind::kStart && !asked) {
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
    if (context_.now > end || context_.events.empty()) {
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
    Dispatch(context_.events.At(event));
    context_.events.GiveBack(event);
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
  if (context_.events.overflown()) {
    context_.Violate("the simulator's own", [] { return "more events than it can order"; });
  }
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
  const bool alone = !context_.shape.whole;
  for (uint32_t block = 0; alone && block < context_.shape.blocks; ++block) {
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
