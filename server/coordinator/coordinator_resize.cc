// Servers come and go while the job trains.
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "config/shards.h"
#include "server/coordinator/coordinator_core.h"
#include "server/coordinator/phrases.h"

namespace leeway {

absl::StatusOr<v1::ResizeServersReply> CoordinatorCore::ResizeServers(
    const v1::ResizeServersRequest& request, Time now) {
  const uint32_t servers = request.servers();
  RETURN_IF_ERROR(CheckResize(servers));
  v1::ResizeServersReply reply;
  reply.set_before(servers_.wanted());
  if (servers == servers_.wanted()) return reply;
  Emit({.name = "resizing",
        .message = absl::StrCat("from ", servers_.wanted(), " to ", servers, " servers")});
  servers_.Want(servers);
  placement_.Want(servers);
  resizing_ = true;
  // A coordinator started again goes on with it.
  commands_.push_back(WriteRecord{Record(v1::JOB_STARTING)});
  Rebalance(now);
  return reply;
}

absl::Status CoordinatorCore::CheckResize(uint32_t servers) const {
  const v1::TrainingJob& job = options_.job;
  const uint32_t least = job.servers().replicas(), most = placement_.shards();
  if (servers < least || servers > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(servers, " servers: the job can have ", least, " (servers.replicas) to ", most,
                     " (servers.shards, which is fixed when a run begins)"));
  }
  if (phase_ == Phase::kGoingBack) {
    return absl::UnavailableError(
        absl::StrCat("the job goes back to a checkpoint: ", going_back_why_));
  }
  if (phase_ != Phase::kRunning) {
    return absl::FailedPreconditionError(began_ ? Ending() : "the job has not begun yet");
  }
  const uint64_t state = StateVectors(job) * block_elements_ * sizeof(float);
  if (state <= kStateBytesMax) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("a block with all of its state, ", state, " bytes, goes to another server in ",
                   "one message, of ", kStateBytesMax, " at most: begin the run with a smaller ",
                   "servers.block_bytes"));
}

absl::Status CoordinatorCore::CheckWanted(const v1::RegisterServerRequest& request,
                                          const std::string& who, Time now) {
  const uint32_t index = request.index();
  if (servers_.Wanted(index) || servers_.Known(request)) return absl::OkStatus();
  const ServerEntry& entry = servers_[index];
  if (phase_ == Phase::kStarting && placement_.Holds(index)) return absl::OkStatus();
  const bool before = entry.expected || entry.state == ServerState::kRemoved || request.job() != 0;
  if (entry.here()) {
    const std::string why = absl::StrCat(who, " is a new process");
    const bool survives = Survives(index);
    if (!survives) GoBack(why, now);
    // First: nobody waits for it to hear of anything.
    RemoveIdle();
    if (survives) Reassign(why, now);
  }
  if (before) {
    return absl::AlreadyExistsError(absl::StrCat("the job goes on without server ", index));
  }
  return absl::UnavailableError(
      absl::StrCat(who, " is not asked for: the job has ", servers_.wanted(),
                   " servers; `leeway resize ... --servers ", index + 1, "` changes that"));
}

void CoordinatorCore::Rebalance(Time now) {
  const bool open = phase_ == Phase::kRunning || phase_ == Phase::kStopping;
  // One thing after another; and while the last cut is being written everybody keeps what they
  // have.
  if (!open || !failure_.empty() || !first_.empty()) return;
  const uint64_t epoch = placement_.epoch();
  const Placement::Moves moves = placement_.Rebalance(servers_.Here());
  if (moves.any) {
    ForgetHeld(epoch);
    const std::string to = absl::StrCat("shards move, to ", servers_.wanted(), " servers");
    Reassign(resizing_ ? to : "shards go back to where they were", now, moves.owners);
  }
  if (!first_.empty()) return;
  RemoveIdle();
  if (!resizing_ || placement_.ToMove() > 0 || !servers_.Absent().empty()) return;
  resizing_ = false;
  Emit({.name = "resized", .message = absl::StrCat(servers_.wanted(), " servers")});
}

void CoordinatorCore::RemoveIdle() {
  for (uint32_t i = servers_.wanted(); i < servers_.size(); ++i) {
    const ServerState state = servers_[i].state;
    if (state == ServerState::kWaiting || state == ServerState::kRemoved) continue;
    const bool needed = phase_ > Phase::kGoingBack && placement_.Holds(i);
    if (needed) continue;
    servers_.Remove(i);
    first_.erase(i);
    commands_.push_back(DisconnectServer{i});
    Emit({.name = "server_removed", .server = i, .message = servers_[i].address});
  }
}

std::vector<uint32_t> CoordinatorCore::HoldersMissing(Time now) const {
  std::vector<uint32_t> missing;
  const bool counts = phase_ == Phase::kStarting && options_.before && replicated();
  if (!counts || now - created_ > lease_) return missing;
  for (uint32_t i = servers_.wanted(); i < servers_.size(); ++i) {
    if (placement_.Holds(i) && !servers_[i].here()) missing.push_back(i);
  }
  return missing;
}

std::string CoordinatorCore::ResizeMessage() const {
  const uint32_t shards = resizing_ ? placement_.ToMove() : 0;
  const std::string moving =
      shards == 0
          ? ""
          : absl::StrCat(shards, shards == 1 ? " shard" : " shards", " to move, to ",
                         servers_.wanted(), servers_.wanted() == 1 ? " server" : " servers");
  const std::string absent = resizing_ ? ListOf("server", servers_.Absent()) : "";
  return And(moving, absent.empty() ? "" : "waiting for " + absent);
}

}  // namespace leeway
