// Servers and the parts of cuts.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "config/length.h"
#include "server/coordinator/coordinator_core.h"
#include "server/coordinator/phrases.h"

namespace leeway {

absl::StatusOr<v1::RegisterServerReply> CoordinatorCore::RegisterServer(
    const v1::RegisterServerRequest& request, Time now) {
  const std::string who = absl::StrCat("server ", request.index(), " at ", request.address());
  RETURN_IF_ERROR(CheckPeer(request.build(), who));
  RETURN_IF_ERROR(servers_.Check(request));
  // The run whose coordinator had this address before is over.
  if (request.job() != 0 && request.job() != options_.job_id) {
    return absl::AlreadyExistsError(absl::StrCat(who, " is of job ", absl::Hex(request.job()),
                                                 "; here is another, ",
                                                 absl::Hex(options_.job_id)));
  }
  if (servers_.Past(request)) {
    return absl::AbortedError(absl::StrCat(who, " has been replaced by the process at ",
                                           servers_[request.index()].address, ": stop"));
  }
  // Not believed before it is heard once more: a process that has died since can have sent this,
  // and what holds the index may be its successor.
  if (!servers_.Known(request) && servers_[request.index()].here()) {
    servers_.Claim(request);
  } else {
    RETURN_IF_ERROR(TakeProcess(request, now));
  }
  v1::RegisterServerReply reply;
  *reply.mutable_job() = options_.job;
  reply.set_job_id(options_.job_id);
  reply.set_run_dir(options_.run_dir);
  return reply;
}

absl::Status CoordinatorCore::TakeProcess(const v1::RegisterServerRequest& request, Time now) {
  const uint32_t index = request.index();
  const std::string who = absl::StrCat("server ", index, " at ", request.address());
  RETURN_IF_ERROR(CheckWanted(request, who, now));
  if (servers_.Known(request)) {
    Return(index, now);
    Advance(now);
    return absl::OkStatus();
  }
  const bool survives = Survives(index);
  const std::string why = absl::StrCat(who, " is a new process");
  if (!survives) {
    GoBack(absl::StrCat(why, ": the blocks that server ", index, " held are lost"), now);
  }
  if (!survives && phase_ > Phase::kGoingBack) return RefusedAtTheEnd();
  servers_.Register(request, now);
  first_.erase(index);
  commands_.push_back(ConnectServer{index, request.address()});
  Emit({.name = "server_registered", .server = index, .message = request.address()});
  configuring_ = false;
  if (survives) {
    if (servers_.Wanted(index)) placement_.Join(index);
    Reassign(why, now);
  }
  Advance(now);
  return absl::OkStatus();
}

absl::StatusOr<v1::ServerHeartbeatReply> CoordinatorCore::ServerHeartbeat(
    const v1::ServerHeartbeatRequest& request, Time now) {
  RETURN_IF_ERROR(CheckJob(request.job()));
  if (request.index() >= servers_.size() ||
      servers_[request.index()].state == ServerState::kWaiting) {
    return absl::FailedPreconditionError(
        absl::StrCat("server ", request.index(), " is not known here: register first"));
  }
  if (servers_[request.index()].state == ServerState::kRemoved) {
    return absl::AlreadyExistsError(
        absl::StrCat("the job goes on without server ", request.index()));
  }
  if (!servers_.Holds(request.index(), request.nonce())) {
    const auto claim = servers_.TakeClaim(request.index(), request.nonce());
    if (!claim) {
      return absl::FailedPreconditionError(
          absl::StrCat("another process is server ", request.index(), " here: register again"));
    }
    RETURN_IF_ERROR(TakeProcess(*claim, now));
  }
  servers_.Confirm(request.index());
  Return(request.index(), now);
  TakeSynced(request, now);
  servers_.TakeLoad(request.index(), request.load());
  v1::ServerHeartbeatReply reply;
  // 0, which is nobody's: no lease is renewed in an epoch that is past or not on record.
  reply.set_epoch(OnRecord() ? placement_.epoch() : 0);
  return reply;
}

void CoordinatorCore::Return(uint32_t server, Time now) {
  if (!servers_.Seen(server, now)) return;
  commands_.push_back(ConnectServer{server, servers_[server].address});
  configuring_ = false;
  // What it held others hold by now.
  const bool open = phase_ > Phase::kGoingBack && phase_ < Phase::kShutdown;
  if (open && servers_.Wanted(server) && placement_.Join(server)) {
    Reassign(absl::StrCat("server ", server, " is back"), now);
  }
  Advance(now);
}

void CoordinatorCore::ConfigureDone(uint32_t server, uint64_t round, const absl::Status& status,
                                    Time now) {
  // Of one that was let go of nothing is needed.
  if (round != round_ || servers_[server].state == ServerState::kRemoved) return;
  if (phase_ > Phase::kGoingBack && !status.ok()) {
    GoBack(absl::StrCat("server ", server, " could not take what it was given: ", status.message()),
           now);
    return Advance(now);
  }
  if (phase_ > Phase::kGoingBack) {
    if (servers_[server].here()) servers_.MarkReady(server);
    CommitAgain();
    if (first_.erase(server) == 0) return;
    heard_.insert(server);
    if (!first_.empty()) return;
    SendPlacement(heard_, now);
    Advance(now);
    return Rebalance(now);
  }
  if (!configuring_) return;
  if (!status.ok()) {
    Fail(absl::StrCat("server ", server, " could not make its blocks: ", status.ToString()), now);
  } else {
    servers_.MarkReady(server);
  }
  Advance(now);
}

void CoordinatorCore::ExpireServers(Time now) {
  const std::vector<uint32_t> lost = servers_.Expire(now);
  if (lost.empty() || phase_ >= Phase::kShutdown) return;
  for (const uint32_t server : lost) {
    commands_.push_back(DisconnectServer{server});
    Emit({.name = "server_lost", .server = server, .message = servers_[server].address});
  }
  const std::string why =
      absl::StrCat(ListOf("server", lost), " at ", servers_[lost.front()].address,
                   " gave no sign of life for ", Seconds(lease_), " s");
  if (std::all_of(lost.begin(), lost.end(), [this](uint32_t server) { return Survives(server); })) {
    return Reassign(why, now);
  }
  GoBack(why, now);
  configuring_ = false;
}

void CoordinatorCore::ShutdownDone(uint32_t server, Time now) {
  if (phase_ != Phase::kShutdown) return;
  servers_.MarkShutDown(server);
  Advance(now);
}

// ---- cuts

absl::Status CoordinatorCore::ShardSaved(const v1::ShardSavedRequest& request, Time now) {
  RETURN_IF_ERROR(CheckJob(request.job()));
  if (request.index() >= placement_.shards()) {
    return absl::InvalidArgumentError(
        absl::StrCat("shard ", request.index(), " of a job with ", placement_.shards(), " shards"));
  }
  RETURN_IF_ERROR(CheckGeneration(request.generation(), ShardName(request.index())));
  const uint64_t clock = request.clock();
  if (!length_ || clock == 0 || cut_every_ == 0 || clock % cut_every_ != 0 ||
      clock > LargestClock()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no cut at clock ", clock,
                                                   ": cuts are every ", cut_every_, " clocks"));
  }
  if (request.error().empty() && request.shard().file().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(ShardName(request.index()), ": no file is named for its part of a cut"));
  }
  // Of the last cut the answers to Save count.
  if (phase_ >= Phase::kSaving && clock >= last_clock_) return absl::OkStatus();
  if (request.error().empty()) return AddShard(request.index(), clock, request.shard(), now);
  return AddShard(request.index(), clock, absl::UnavailableError(request.error()), now);
}

void CoordinatorCore::SaveDone(uint32_t shard, uint64_t round, uint64_t clock,
                               const absl::StatusOr<v1::SavedShard>& saved, Time now) {
  if (phase_ != Phase::kSaving || round + 1 != saves_ || clock != last_clock_) return;
  // Its blocks are not where the latest set has brought the others.
  if (commits_sets_ && absl::IsFailedPrecondition(saved.status())) latest_lacks_ = true;
  AddShard(shard, clock, saved, now).IgnoreError();
}

absl::Status CoordinatorCore::AddShard(uint32_t shard, uint64_t clock,
                                       const absl::StatusOr<v1::SavedShard>& file, Time now) {
  const bool failed_before = cuts_.Failed(clock);
  absl::Status added;
  if (file.ok()) {
    added = cuts_.AddShard(clock, shard, *file, now);
  } else {
    cuts_.Fail(clock, absl::StrCat(ShardName(shard), ": ",
                                   Shortened(std::string(file.status().message()))));
  }
  if (!failed_before && cuts_.Failed(clock)) {
    const absl::Status& why = file.ok() ? added : file.status();
    Emit({.name = "checkpoint_failed",
          .server = placement_.owner(shard),
          .clock = clock,
          .message = std::string(why.message())});
  }
  WriteWholeCut();
  Advance(now);
  return added;
}

absl::Status CoordinatorCore::WorkerStateSaved(const Sender& sender, const v1::SavedShard& file,
                                               Time now) {
  RETURN_IF_ERROR(CheckSender(sender));
  SignOfLife(sender.rank, now);
  RETURN_IF_ERROR(cuts_.AddState(sender.clock, sender.rank, file));
  WriteWholeCut();
  Advance(now);
  return absl::OkStatus();
}

std::string CoordinatorCore::ShardName(uint32_t shard) const {
  return absl::StrCat("shard ", shard, " (server ", placement_.owner(shard), ")");
}

std::string CoordinatorCore::MissingParts(uint64_t clock) const {
  const CutBook::Missing missing = cuts_.MissingOf(clock, Needs());
  std::vector<std::string> parts;
  for (const uint32_t shard : missing.shards) parts.push_back(ShardName(shard));
  for (const uint32_t rank : missing.ranks) {
    parts.push_back(absl::StrCat("the state of worker ", rank));
  }
  return absl::StrJoin(parts, ", ");
}

CutBook::Needs CoordinatorCore::Needs() const {
  return [this](uint64_t clock, uint32_t number) -> std::pair<StateNeed, uint64_t> {
    const Rank& rank = ranks_[number];
    const bool last = phase_ == Phase::kSaving && clock == last_clock_;
    if (rank.state == RankState::kFinished || rank.state == RankState::kStopped) {
      // It has passed a periodic cut before it left.
      if (!last && lockstep() && rank.clock >= clock) return {StateNeed::kAtCut, 0};
      return {StateNeed::kAtLeaving, rank.clock};
    }
    // Where they do not go in step no rank is at the clock of a cut but by chance.
    if (rank.state == RankState::kFailed || last || !lockstep()) return {StateNeed::kIfAny, 0};
    return {StateNeed::kAtCut, 0};
  };
}

void CoordinatorCore::WriteWholeCut() {
  if (!schema_ || phase_ >= Phase::kShutdown) return;
  const std::optional<CutParts> parts = cuts_.TakeWhole(Needs());
  if (!parts) return;
  WriteManifest write;
  write.manifest.set_job_id(options_.job_id);
  write.manifest.set_clock(parts->clock);
  *write.manifest.mutable_schema() = *schema_;
  *write.manifest.mutable_job() = options_.job;
  for (const v1::SavedShard& shard : parts->shards) {
    *write.manifest.add_shards() = shard;
    write.manifest.mutable_shards()->rbegin()->clear_clocks();
  }
  AddData(parts->clock, parts->shards, write.manifest);
  for (const auto& [rank, state] : parts->states) {
    v1::SavedWorkerState* saved = write.manifest.add_worker_states();
    saved->set_rank(rank);
    *saved->mutable_file() = state.file;
    if (state.folder != parts->clock) {
      write.adopt.push_back({state.folder, state.file.file()});
    }
  }
  commands_.push_back(std::move(write));
}

void CoordinatorCore::ManifestWritten(uint64_t clock, const absl::Status& status, Time now) {
  cuts_.Written(clock, status.ok());
  DataWritten(clock, status.ok());
  if (status.ok()) {
    Emit({.name = "checkpoint", .clock = clock});
  } else {
    Emit({.name = "checkpoint_failed",
          .clock = clock,
          .message = absl::StrCat("its manifest: ", status.ToString())});
  }
  // One that has become whole meanwhile.
  WriteWholeCut();
  Advance(now);
}

}  // namespace leeway
