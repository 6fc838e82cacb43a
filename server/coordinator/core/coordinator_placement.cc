// Decides which server holds which shard, as servers come and go, and as their number changes.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/counted.h"
#include "common/status.h"
#include "config/shards.h"
#include "config/topology.h"
#include "server/coordinator/core/coordinator_core.h"
#include "server/coordinator/core/phrases.h"
#include "server/core/checkpoint_names.h"

namespace leeway {

bool CoordinatorCore::Survives(uint32_t server) {
  const uint64_t epoch = shards_.places().epoch();
  if (!life_.under_way() || stop_.failed() || !shards_.Lose(server)) return false;
  sets_.ForgetHeld(shards_.places(), epoch);
  return true;
}

void CoordinatorCore::Reassign(const std::string& why, Time now, const std::set<uint32_t>& first) {
  commands_.Emit({.name = "placement_changed",
                  .message = absl::StrCat(why, "; epoch ", shards_.places().epoch(),
                                          ", shards owned by servers ",
                                          absl::StrJoin(shards_.Owners(), ", "))});
  // The record is written before a server acts on the placement. So a restarted coordinator never
  // relies on a replica that does not exist any more.
  WriteDown(v1::JOB_STARTING);
  rollout_.Begin(first, fleet_.table());
  SendPlacement(now);
  if (saving()) cuts_.AskAgain(life_.generation(), now);
}

void CoordinatorCore::SendPlacement(Time now) {
  rollout_.Send(Configuration(false), fleet_.table(), now + facts().start_limit());
  workers_.TellAgain();
}

v1::ConfigureRequest CoordinatorCore::Configuration(bool load) const {
  const CoordinatorOptions& options = facts().options();
  v1::ConfigureRequest request;
  request.set_job(options.job_id);
  request.set_generation(life_.generation());
  *request.mutable_schema() = *model_.schema();
  request.set_block_elements(model_.block_elements());
  request.set_load(load);
  if (load && cuts_.newest()) {
    request.set_checkpoint(CheckpointFolder(options.run_dir, *cuts_.newest()));
  }
  for (uint32_t i = 0; i < fleet_.table().size(); ++i) {
    request.add_servers(fleet_.processes()[i].address);
    *request.add_local_servers() = fleet_.processes()[i].local;
  }
  *request.mutable_placement() = shards_.places().proto();
  *request.mutable_length() = *model_.length();
  request.set_cut_every(model_.cut_every());
  request.set_run_dir(options.run_dir);
  facts().FillSettled(request);
  return request;
}

void CoordinatorCore::Take(const ConfigureDone& done, Time now) {
  if (done.round != rollout_.round()) return;
  const uint32_t server = done.server;
  const ServerEntry& entry = fleet_.table()[server];
  // The answer of a removed server does not matter.
  if (entry.state == ServerState::kRemoved) return;
  if (life_.phase() <= Phase::kGoingBack) return TakeMade(done, now);
  if (!done.status.ok()) {
    GoBack(absl::StrCat(ServerName(facts().job(), server),
                        " could not apply the new placement: ", done.status.message()),
           now);
    return Advance(now);
  }
  if (entry.here()) fleet_.MarkReady(server);
  sets_.CommitAgain(life_.generation());
  if (!rollout_.Heard(server)) return;
  SendPlacement(now);
  Advance(now);
  Rebalance(now);
}

void CoordinatorCore::TakeMade(const ConfigureDone& done, Time now) {
  if (!rollout_.configuring()) return;
  if (done.status.ok()) {
    fleet_.MarkReady(done.server);
  } else {
    const std::string why = absl::StrCat(ServerName(facts().job(), done.server),
                                         " could not make its blocks: ", done.status.ToString());
    const bool lasts = absl::IsInvalidArgument(done.status) || absl::IsDataLoss(done.status);
    lasts ? FailForGood(why, now) : Fail(why, now);
  }
  Advance(now);
}

void CoordinatorCore::TakeSynced(const v1::ServerHeartbeatRequest& request, Time now) {
  // At the end the record says how the job has ended, and does not change.
  if (!life_.under_way() || request.generation() != life_.generation()) return;
  if (!shards_.TakeSynced(request)) return;
  // No command waits for this record, because decisions that follow from the synced replicas write
  // records of their own.
  WriteDown(v1::JOB_STARTING, false);
  if (shards_.places().whole() && !shards_.resizing()) {
    commands_.Emit({.name = "replicas_synced"});
  }
  Rebalance(now);
}

// ---- resizing

absl::StatusOr<v1::ResizeServersReply> CoordinatorCore::ResizeServers(
    const v1::ResizeServersRequest& request, Time now) {
  const uint32_t servers = request.servers(), before = fleet_.table().wanted();
  RETURN_IF_ERROR(CheckResize(servers, now));
  v1::ResizeServersReply reply;
  reply.set_before(before);
  if (servers == before) return reply;
  WantServers(servers, now);
  return reply;
}

void CoordinatorCore::WantServers(uint32_t servers, Time now) {
  commands_.Emit({.name = "resizing",
                  .message = absl::StrCat("from ", fleet_.table().wanted(), " to ",
                                          Counted(servers, "server"))});
  fleet_.Want(servers);
  shards_.Resize(servers);
  // A restarted coordinator continues the resizing.
  WriteDown(v1::JOB_STARTING);
  Rebalance(now);
}

absl::Status CoordinatorCore::CheckResize(uint32_t servers, Time now) const {
  if (WorkersHoldBlocks(facts().job())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "topology.type: ", TopologyType(facts().job()),
        " has no servers to add or remove: each worker holds an equal part of the blocks. To "
        "change the number of workers, stop the job and resume it with another workers.count"));
  }
  const uint32_t least = facts().job().servers().replicas(), most = shards_.places().shards();
  if (servers < least || servers > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        Counted(servers, "server"), ": the job can have ", least, " (servers.replicas) to ", most,
        " (servers.shards, which is fixed when a run begins)"));
  }
  if (life_.phase() == Phase::kGoingBack) {
    return absl::UnavailableError(
        absl::StrCat("the job is going back to a checkpoint: ", life_.going_back_why()));
  }
  if (life_.phase() == Phase::kStarting && facts().StepsBefore() > 0) {
    return absl::UnavailableError(
        absl::StrCat("the coordinator was started again: ", Missing(now)));
  }
  if (life_.phase() != Phase::kRunning) {
    return absl::FailedPreconditionError(life_.began() ? stop_.Ending()
                                                       : "the job has not begun yet");
  }
  const uint64_t state = model_.BlockStateBytes();
  if (state <= kStateBytesMax) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("a block with its whole state has ", state,
                   " bytes, but must go to another server in one message of at most ",
                   kStateBytesMax, " bytes: begin the run with a smaller servers.block_bytes"));
}

void CoordinatorCore::Rebalance(Time now) {
  const bool open = life_.phase() == Phase::kRunning || life_.phase() == Phase::kStopping;
  // One move at a time. While the last cut is being written, every server keeps its shards.
  if (!open || stop_.failed() || rollout_.waits()) return;
  const uint64_t epoch = shards_.places().epoch();
  const Placement::Moves moves = shards_.Rebalance();
  if (moves.any) {
    sets_.ForgetHeld(shards_.places(), epoch);
    Reassign(WhyShardsMove(), now, moves.owners);
  }
  if (rollout_.waits()) return;
  RemoveIdle();
  shards_.FinishResizing();
}

std::string CoordinatorCore::WhyShardsMove() const {
  const ServerTable& servers = fleet_.table();
  if (shards_.resizing()) {
    return absl::StrCat("shards move, to ", Counted(servers.wanted(), "server"));
  }
  const std::string draining = ListOf("server", servers.Draining());
  return draining.empty() ? "shards go back to where they were"
                          : absl::StrCat("shards leave ", draining);
}

void CoordinatorCore::RemoveIdle() {
  const ServerTable& servers = fleet_.table();
  for (uint32_t i = servers.wanted(); i < servers.size(); ++i) {
    const ServerState state = servers[i].state;
    if (state == ServerState::kWaiting || state == ServerState::kRemoved) continue;
    const bool needed = life_.phase() > Phase::kGoingBack && shards_.places().Holds(i);
    if (needed) continue;
    fleet_.Remove(i);
    rollout_.Forget(i);
  }
}

}  // namespace leeway
