#include "tests/sim/host.h"

#include "absl/strings/str_cat.h"

namespace leeway::sim {
namespace {

size_t BlocksOf(const Shape& shape, uint32_t shard) {
  return (shape.blocks - shard + shape.servers - 1) / shape.servers;
}

}  // namespace

// ---- a replica

absl::StatusCode SimReplica::Take(const Context& context, const Message& message) {
  const bool meant = message.stop_at == since_epoch_ || context.bug == Bug::kSinceEpochIgnored;
  Slot& slot = slots_[message.block / context.shape.servers];
  const uint64_t held = slot.current.number;
  if (!meant || closed_ || (slot.here && message.version.number < held)) {
    return absl::StatusCode::kFailedPrecondition;
  }
  const bool next = slot.here && message.version.number == held + 1;
  if (context.shape.sync() && (!slot.here || message.version.number != held)) {
    slot.previous.reset();
    if (next) slot.previous = slot.current;
  }
  if (message.value > 0) slot.previous = context.versions_before[message.value - 1];
  slot.here = true;
  slot.current = message.version;
  return absl::StatusCode::kOk;
}

std::optional<std::vector<SimReplica::Slot>> SimReplica::TakeOver() {
  closed_ = true;
  for (const Slot& slot : slots_) {
    if (!slot.here) return std::nullopt;
  }
  return slots_;
}

// ---- requests

SimHost::SimHost(uint32_t server, const Shape& shape, uint32_t boot)
    : server_(server), node_(static_cast<NodeId>(kServer0 + server)), boot_(boot) {
  if (shape.whole) return;
  made_ = true;
  owned_[server].emplace(server, node_, shape, SimServer::Place{boot, 0, 0, 0});
}

absl::StatusCode SimHost::CheckHeld(const Context& context, const Message& request) const {
  if (request.generation < generation_ && context.bug != Bug::kOldGeneration) {
    return absl::StatusCode::kFailedPrecondition;
  }
  const bool early = !made_ || request.generation > generation_;
  return early ? absl::StatusCode::kUnavailable : absl::StatusCode::kOk;
}

void SimHost::OnHeard(Micros sent) {
  lease_ = sent + kLease;
  for (auto& each : owned_) {
    if (each) each->SetLease(lease_);
  }
}

bool SimHost::HasLease(const Context& context) const {
  return context.LocalNow(node_) < lease_ || context.bug == Bug::kLeaseIgnored;
}

void SimHost::OnRequest(Context& context, const Message& request) {
  SimServer* const here = shard(request.block % context.shape.servers);
  if (!context.shape.whole) return here->OnRequest(context, request);
  absl::StatusCode code = CheckHeld(context, request);
  if (!HasLease(context)) {
    ++context.counts.leases_over;
    code = absl::StatusCode::kUnavailable;
  }
  if (code == absl::StatusCode::kOk && here == nullptr) code = absl::StatusCode::kUnavailable;
  if (code != absl::StatusCode::kOk) return context.Send(ReplyTo(request, code));
  here->OnRequest(context, request);
}

void SimHost::OnReplicate(Context& context, const Message& message) {
  Message reply = ReplyTo(message, CheckHeld(context, message));
  reply.kind = Kind::kReplicated;
  auto& store = replicas_[message.block % context.shape.servers];
  if (reply.code == absl::StatusCode::kOk) {
    reply.code = store ? store->Take(context, message) : absl::StatusCode::kFailedPrecondition;
  }
  context.counts.replicated += reply.code == absl::StatusCode::kOk ? 1 : 0;
  context.SendInOrder(reply);
}

void SimHost::OnReplicated(Context& context, const Message& message) {
  SimServer* const here = shard(message.block % context.shape.servers);
  if (here != nullptr) here->OnReplicated(context, message);
}

void SimHost::OnBroken(Context& context, const Message& message) {
  SimServer* const here = shard(message.block % context.shape.servers);
  if (here != nullptr) here->OnBroken(context, message);
}

void SimHost::OnApplied(Context& context, const Message& timer) {
  SimServer* const here = shard(timer.block % context.shape.servers);
  if (here != nullptr) here->OnApplied(context, timer);
}

void SimHost::OnTick(Context& context) {
  for (auto& each : owned_) {
    if (each) each->OnTick(context);
  }
}

void SimHost::OnSetLive(Context& context, uint32_t rank, bool live) {
  ++context.counts.set_lives;
  for (auto& each : owned_) {
    if (each) each->OnSetLive(context, rank, live);
  }
}

absl::StatusCode SimHost::OnCommitted(Context& context, const Message& command) {
  const absl::StatusCode code = CheckHeld(context, command);
  if (code == absl::StatusCode::kUnavailable) return absl::StatusCode::kOk;
  for (auto& each : owned_) {
    if (each && code == absl::StatusCode::kOk) {
      each->OnCommitted(context, command.clock, command.value);
    }
  }
  return code;
}

void SimHost::OnHeldHeard(Context& context, const Message& reply) {
  SimServer* const here = shard(reply.block);
  if (here != nullptr) here->OnHeldHeard(context, reply);
}

absl::StatusOr<uint64_t> SimHost::Hold(const Context& context, const Message& command,
                                       Disks& disks) const {
  if (!made_) return absl::UnavailableError("nothing is here");
  if (generation_ != command.generation) return absl::FailedPreconditionError("another generation");
  const auto& here = owned_[command.rank];
  if (!here) return absl::UnavailableError("another's shard");
  return here->Hold(context, command.clock, disks[command.rank]);
}

void SimHost::Fill(const Context& context, Message& message) const {
  message.flag = made_;
  message.generation = generation_;
  for (uint32_t shard = 0; shard < context.shape.servers; ++shard) {
    message.version.clocks[shard] = owned_[shard] ? owned_[shard]->synced_since(context) : 0;
  }
}

// ---- committed sets and cuts

absl::StatusCode SimHost::Configure(Context& context, const Message& command, const Disks& disks) {
  const v1::Placement& placement = context.placements[command.value];
  const bool same_generation = made_ && generation_ == command.generation;
  if (same_generation && epoch_ == placement.epoch() && loaded_ == command.flag) {
    return absl::StatusCode::kOk;
  }
  if (made_ && generation_ >= command.generation &&
      !(same_generation && epoch_ < placement.epoch())) {
    return absl::StatusCode::kFailedPrecondition;
  }
  if (!same_generation) {
    for (uint32_t shard = 0; shard < context.shape.servers; ++shard) GiveUp(context, shard);
    generation_ = command.generation;
  }
  made_ = true;
  epoch_ = placement.epoch();
  loaded_ = command.flag;
  CheckOwners(context, placement);
  const absl::StatusCode placed = Place(context, command, placement, disks);
  if (placed == absl::StatusCode::kOk) return placed;
  // The process holds something else than it should. The coordinator decides what happens next.
  for (uint32_t shard = 0; shard < context.shape.servers; ++shard) GiveUp(context, shard);
  made_ = false;
  return placed;
}

void SimHost::CheckOwners(Context& context, const v1::Placement& placement) const {
  std::array<uint32_t, kServersMax> owners{};
  for (uint32_t shard = 0; shard < context.shape.servers; ++shard) {
    owners[shard] = placement.shards(static_cast<int>(shard)).owner();
  }
  const auto known = context.owners.try_emplace({generation_, epoch_}, owners).first->second;
  if (known == owners) return;
  context.Violate("a shard has one owner in an epoch", [&] {
    return absl::StrCat("generation ", generation_, ": ", placement.ShortDebugString());
  });
}

absl::StatusCode SimHost::Place(Context& context, const Message& command,
                                const v1::Placement& placement, const Disks& disks) {
  for (uint32_t shard = 0; shard < context.shape.servers; ++shard) {
    const v1::ShardPlace& place = placement.shards(static_cast<int>(shard));
    if (place.owner() == server_) {
      if (!Own(context, shard, command, placement, disks)) {
        return absl::StatusCode::kFailedPrecondition;
      }
    } else if (place.has_replica() && place.replica() == server_) {
      auto& store = replicas_[shard];
      if (store && store->since_epoch() == place.since_epoch()) continue;
      GiveUp(context, shard);
      store.emplace(place.since_epoch(), BlocksOf(context.shape, shard));
    } else {
      GiveUp(context, shard);
    }
  }
  return absl::StatusCode::kOk;
}

bool SimHost::Own(Context& context, uint32_t shard, const Message& command,
                  const v1::Placement& placement, const Disks& disks) {
  auto& owned = owned_[shard];
  if (!owned) {
    owned.emplace(shard, node_, context.shape,
                  SimServer::Place{boot_, generation_, epoch_, ++context.instances});
    owned->SetLease(lease_);
    if (!command.flag) {
      if (!Promote(context, shard, *owned)) return false;
    } else {
      owned->Begin(context, command.stop_at, disks[shard]);
    }
    replicas_[shard].reset();
  }
  const v1::ShardPlace& place = placement.shards(static_cast<int>(shard));
  if (!place.has_replica()) {
    owned->SetReplica(context, std::nullopt, 0);
  } else {
    owned->SetReplica(context, static_cast<NodeId>(kServer0 + place.replica()),
                      place.since_epoch());
  }
  return true;
}

bool SimHost::Promote(Context& context, uint32_t shard, SimServer& made) {
  auto& store = replicas_[shard];
  if (!store) return false;
  const auto slots = store->TakeOver();
  if (!slots) return false;
  ++context.counts.take_overs;
  for (size_t i = 0; i < slots->size(); ++i) {
    made.TakeOver(context, i, (*slots)[i].current, (*slots)[i].previous);
  }
  return true;
}

void SimHost::GiveUp(Context& context, uint32_t shard) {
  replicas_[shard].reset();
  if (!owned_[shard]) return;
  owned_[shard]->Close(context);
  owned_[shard].reset();
}

}  // namespace leeway::sim
