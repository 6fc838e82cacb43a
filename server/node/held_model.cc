#include "server/node/held_model.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/block_cuts.h"
#include "common/codec/choose.h"
#include "common/counted.h"
#include "common/rpc/channel.h"
#include "common/shm/shared_layout.h"
#include "common/status.h"
#include "config/contributors.h"
#include "config/shards.h"
#include "config/topology.h"
#include "server/node/configuration_check.h"
#include "server/node/load_shard.h"
#include "server/node/quorum_reporter.h"

namespace leeway {
namespace {

// Makes the shared memory for the versions of a server's blocks, from which workers on this host
// can read. It has room for the current and the previous version of all shards, and for versions to
// which a checkpoint or slow readers refer. Unused memory costs nothing. If a block has more than
// one holder, the memory also has room for its `slots`, which the other holder reads. If workers
// fetch from each other, it has room for what the worker of this process publishes in two clocks.
// Returns null if small blocks would waste pages or if the operating system supplies no memory.
// Versions are then sent in messages.
std::shared_ptr<SharedArena> MakeVersionMemory(const BlockLayout& layout,
                                               const v1::TrainingJob& job, size_t slots) {
  constexpr uint64_t kPageBytes = 4096;
  constexpr uint64_t kBlockBytesMin = 1024;
  constexpr uint64_t kVersions = 5;
  constexpr uint64_t kPieces = 4;
  constexpr uint64_t kSpareBytes = 64 << 20;
  const uint64_t block_bytes = std::min(layout.block_elements(), layout.total()) * sizeof(float);
  if (block_bytes < kBlockBytesMin) return nullptr;
  const uint64_t pages = (block_bytes + kPageBytes - 1) / kPageBytes;
  const uint64_t vectors = job.servers().replicas() > 1 ? 1 + slots : 1;
  const uint64_t copies = vectors * kVersions + (WorkersFetch(job) ? kPieces : 0);
  auto memory =
      SharedArena::Create(std::min(copies * layout.blocks() * pages * kPageBytes + kSpareBytes,
                                   kSharedBytesMax - kSharedPageBytes));
  if (memory.ok()) return *memory;
  spdlog::warn("no shared memory: {}", std::string(memory.status().message()));
  return nullptr;
}

// Checks that a cut's clock is near the clocks of the blocks. This holds in every mode.
absl::Status CheckNear(const std::vector<HeldBlock>& blocks, uint64_t clock) {
  uint64_t farthest = 0;
  for (const HeldBlock& held : blocks) {
    const std::vector<uint64_t>& clocks = held.progress.clocks;
    farthest = std::max(farthest, held.progress.version / std::max<size_t>(clocks.size(), 1));
    for (const uint64_t each : clocks) farthest = std::max(farthest, each);
  }
  // The clock may be two clocks ahead: one for the cut that is being written, and one because the
  // coordinator may count differently.
  if (clock <= farthest + 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("clock: ", clock, " cannot be saved; no worker is beyond clock ", farthest));
}

}  // namespace

absl::StatusOr<std::unique_ptr<HeldModel>> HeldModel::Make(
    Options options, const v1::ConfigureRequest& configuration) {
  if (configuration.has_auto_codec()) {
    ResolveAuto(configuration.auto_codec(), *options.job.mutable_compression());
  }
  if (configuration.has_update()) *options.job.mutable_update() = configuration.update();
  ASSIGN_OR_RETURN(
      const BlockLayout layout,
      BlockLayout::FromWire(configuration.schema().total(), ShardsOf(options.job),
                            configuration.block_elements(), BlockCutsOf(configuration.schema())));
  ASSIGN_OR_RETURN(std::vector<std::string> slot_names, Shard::SlotNames(options.job));
  return std::unique_ptr<HeldModel>(
      new HeldModel(std::move(options), layout, std::move(slot_names)));
}

HeldModel::HeldModel(Options options, const BlockLayout& layout,
                     std::vector<std::string> slot_names)
    : options_(std::move(options)),
      layout_(layout),
      slot_names_(std::move(slot_names)),
      memory_(MakeVersionMemory(layout, options_.job, slot_names_.size())) {}

HeldModel::~HeldModel() {
  for (uint32_t shard = 0; shard < layout_.shards(); ++shard) GiveUp(shard);
}

bool HeldModel::Is(const v1::ConfigureRequest& configuration) const {
  return configuration_.SerializeAsString() == configuration.SerializeAsString();
}

absl::Status HeldModel::CheckFollows(const v1::ConfigureRequest& configuration) const {
  RETURN_IF_ERROR(leeway::CheckFollows(configuration_, configuration));
  if (configuration.generation() != generation() || configuration.load()) return absl::OkStatus();
  for (uint32_t shard = 0; shard < layout_.shards(); ++shard) {
    const bool owns =
        configuration.placement().shards(static_cast<int>(shard)).owner() == options_.server;
    if (!owns || owned_.contains(shard)) continue;
    const auto replica = replicas_.find(shard);
    if (replica == replicas_.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat("server ", options_.server, " does not hold shard ", shard));
    }
    RETURN_IF_ERROR(replica->second->CheckWhole());
  }
  return absl::OkStatus();
}

absl::Status HeldModel::Place(const v1::ConfigureRequest& configuration) {
  const v1::Placement& placement = configuration.placement();
  if (placement.shards_size() != static_cast<int>(layout_.shards())) {
    return absl::InvalidArgumentError(absl::StrCat("placement: it has ", placement.shards_size(),
                                                   " shards; the job has ", layout_.shards()));
  }
  for (uint32_t shard = 0; shard < layout_.shards(); ++shard) {
    const v1::ShardPlace& place = placement.shards(static_cast<int>(shard));
    if (place.owner() == options_.server) {
      RETURN_IF_ERROR(Own(shard, configuration));
    } else if (place.has_replica() && place.replica() == options_.server) {
      Keep(shard, place.since_epoch());
    } else {
      GiveUp(shard);
    }
  }
  configuration_ = configuration;
  return absl::OkStatus();
}

absl::Status HeldModel::Own(uint32_t number, const v1::ConfigureRequest& configuration) {
  auto found = owned_.find(number);
  if (found == owned_.end()) {
    ASSIGN_OR_RETURN(Owned owned, MakeOwned(number, configuration));
    found = owned_.emplace(number, std::move(owned)).first;
    replicas_.erase(number);
  }
  Link(found->second, configuration.placement().shards(static_cast<int>(number)), configuration);
  return absl::OkStatus();
}

absl::StatusOr<HeldModel::Owned> HeldModel::MakeOwned(uint32_t number,
                                                      const v1::ConfigureRequest& configuration) {
  Owned owned;
  owned.cuts = std::make_shared<CutWriter>(
      CutWriter::Options{options_.job_id, number, layout_, slot_names_, configuration.run_dir(),
                         configuration.load() ? 0 : configuration.placement().epoch(),
                         configuration.generation(),
                         options_.job.data().assignment() == v1::ASSIGNMENT_LEASED},
      [report = options_.report, number](uint64_t cut,
                                         const absl::StatusOr<v1::SavedShard>& saved) {
        report(number, cut, saved);
      });
  ASSIGN_OR_RETURN(auto shard, Shard::Make({.job = options_.job,
                                            .schema = configuration.schema(),
                                            .length = configuration.length(),
                                            .block_elements = configuration.block_elements(),
                                            .server = number,
                                            .cut_every = configuration.cut_every(),
                                            .memory = memory_,
                                            .contributions = MakeReporter(number, configuration)},
                                           owned.cuts.get()));
  // The shard keeps its listener alive, because a thread may still be working in a shard that was
  // given up.
  owned.shard =
      std::shared_ptr<Shard>(shard.release(), [cuts = owned.cuts](Shard* s) { delete s; });
  if (!configuration.load()) {
    RETURN_IF_ERROR(Promote(number, *owned.shard));
  } else if (!configuration.checkpoint().empty()) {
    RETURN_IF_ERROR(
        LoadShard(configuration.checkpoint(), options_.job, configuration.length(), *owned.shard));
  }
  return owned;
}

std::shared_ptr<ContributionListener> HeldModel::MakeReporter(
    uint32_t number, const v1::ConfigureRequest& configuration) const {
  const v1::TrainingJob& job = options_.job;
  const uint32_t blocks = layout_.BlocksOn(number);
  if (!CommitsSets(job) || blocks == 0) return nullptr;
  return std::make_shared<QuorumReporter>(
      QuorumReporter::Options{
          .job = options_.job_id,
          .generation = configuration.generation(),
          .shard = number,
          .epoch = configuration.placement().epoch(),
          .rules = {.workers = job.workers().count(),
                    .backup = job.consistency().backup_workers(),
                    .live_only = job.workers().on_worker_loss() == v1::WORKER_LOSS_CONTINUE,
                    .blocks = blocks}},
      MakeChannel(options_.coordinator, *options_.security));
}

absl::Status HeldModel::Promote(uint32_t number, Shard& shard) {
  const auto replica = replicas_.find(number);
  if (replica == replicas_.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("server ", options_.server, " does not hold shard ", number));
  }
  ASSIGN_OR_RETURN(std::vector<ReplicaStore::Block> blocks, replica->second->TakeOver());
  for (ReplicaStore::Block& block : blocks) {
    shard.Load(block.block, std::move(block.values), std::move(block.progress),
               std::move(block.previous));
  }
  spdlog::warn("this server takes over shard {} from its own replica", number);
  return absl::OkStatus();
}

void HeldModel::Link(Owned& owned, const v1::ShardPlace& place,
                     const v1::ConfigureRequest& configuration) {
  const bool same =
      place.has_replica() && owned.link != nullptr && owned.link_epoch == place.since_epoch();
  if (same) return;
  const std::shared_ptr<ReplicaLink> before = std::exchange(owned.link, nullptr);
  if (place.has_replica()) {
    const Way way = WayTo(place.replica(), configuration);
    owned.link_epoch = place.since_epoch();
    owned.link = ReplicaLink::Make({.job = options_.job_id,
                                    .generation = configuration.generation(),
                                    .since_epoch = place.since_epoch(),
                                    .address = way.address,
                                    .memory = way.shares_memory ? memory_ : nullptr,
                                    .security = options_.security,
                                    .queue = options_.queue});
  }
  owned.shard->SetReplica(owned.link);
  if (before != nullptr) before->Close();
}

void HeldModel::Keep(uint32_t number, uint64_t since_epoch) {
  const auto held = replicas_.find(number);
  if (held != replicas_.end() && held->second->since_epoch() == since_epoch) return;
  GiveUp(number);
  const bool sync = options_.job.consistency().mode() == v1::CONSISTENCY_MODE_SYNC;
  replicas_[number] = std::make_shared<ReplicaStore>(
      ReplicaStore::Options{layout_, number, since_epoch, slot_names_.size(), sync, memory_});
}

void HeldModel::GiveUp(uint32_t number) {
  replicas_.erase(number);
  const auto owned = owned_.find(number);
  if (owned == owned_.end()) return;
  owned->second.shard->Close();
  if (owned->second.link != nullptr) owned->second.link->Close();
  owned->second.cuts->Close();
  owned_.erase(owned);
}

HeldModel::Way HeldModel::WayTo(uint32_t server, const v1::ConfigureRequest& configuration) const {
  const int index = static_cast<int>(server);
  const v1::TransportType type = options_.job.transport().type();
  if (index < configuration.local_servers_size() && type != v1::TRANSPORT_TYPE_TCP) {
    const v1::LocalEndpoint& local = configuration.local_servers(index);
    if (!local.address().empty() && !options_.host.empty() && local.host() == options_.host) {
      return {local.address(), type != v1::TRANSPORT_TYPE_UNIX};
    }
  }
  return {index < configuration.servers_size() ? configuration.servers(index) : "", false};
}

ShardTable::Holdings HeldModel::holdings() const {
  ShardTable::Holdings holdings;
  holdings.job = options_.job_id;
  holdings.generation = generation();
  holdings.shards.resize(layout_.shards());
  for (const auto& [number, owned] : owned_) holdings.shards[number] = owned.shard;
  holdings.replicas.resize(layout_.shards());
  for (const auto& [number, store] : replicas_) holdings.replicas[number] = store;
  holdings.memory = memory_;
  return holdings;
}

std::vector<HeldModel::Replicated> HeldModel::replicated() const {
  std::vector<Replicated> replicated;
  for (const auto& [number, owned] : owned_) {
    if (owned.link != nullptr) replicated.push_back({number, owned.link_epoch, owned.shard});
  }
  return replicated;
}

absl::StatusOr<v1::SavedShard> HeldModel::Save(uint32_t shard, uint64_t clock) {
  if (shard >= layout_.shards()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shard: ", shard, " does not exist; the job has ", Counted(layout_.shards(), "shard")));
  }
  const auto owned = owned_.find(shard);
  if (owned == owned_.end()) {
    return absl::UnavailableError(
        absl::StrCat("server ", options_.server, " does not own shard ", shard));
  }
  ASSIGN_OR_RETURN(auto held, owned->second.shard->Hold(clock));
  // A shard without blocks has no part in a checkpoint.
  if (held.empty()) return v1::SavedShard();
  RETURN_IF_ERROR(CheckNear(held, clock));
  return owned->second.cuts->WriteLast(clock, std::move(held));
}

std::string HeldModel::Describe() const {
  uint64_t blocks = 0, values = 0;
  for (const auto& [number, owned] : owned_) {
    blocks += layout_.BlocksOn(number);
    values += layout_.ElementsOn(number);
  }
  return absl::StrCat("holds ", blocks, " of ", Counted(layout_.blocks(), "block"), ", ", values,
                      " values, ", replicas_.size(), " replicas; generation ", generation(),
                      ", epoch ", epoch());
}

}  // namespace leeway
