// What `leeway status` and the live view show.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/coordinator/coordinator_core.h"
#include "server/coordinator/phrases.h"

namespace leeway {

namespace {

// Empty: no server refuses anything for want of room.
std::string LoadMessage(const ServerTable& servers, uint64_t held_bytes) {
  for (uint32_t i = 0; i < servers.size(); ++i) {
    const v1::ServerLoad& load = servers[i].load;
    if (load.refused_contributions() == 0 || load.held_bytes() <= held_bytes) continue;
    return absl::StrCat("server ", i, " holds as many bytes of contributions as it may ",
                        "(limits.held_bytes): ", load.refused_contributions(), " refused");
  }
  return "";
}

}  // namespace

v1::JobState CoordinatorCore::state() const {
  switch (phase_) {
    case Phase::kStarting:
      return v1::JOB_STARTING;
    case Phase::kGoingBack:
    case Phase::kRunning:
      return v1::JOB_RUNNING;
    case Phase::kStopping:
    case Phase::kSaving:
      return v1::JOB_STOPPING;
    case Phase::kShutdown:
    case Phase::kOver:
      break;
  }
  return outcome_;
}

std::string CoordinatorCore::Ending() const {
  if (!failure_.empty()) return absl::StrCat("the job has failed: ", failure_);
  if (!stop_reason_.empty()) return absl::StrCat("the job was stopped: ", stop_reason_);
  return "the job is over";
}

std::string CoordinatorCore::StatusMessage(Time now) const {
  if (phase_ == Phase::kStarting) return Missing(now);
  if (phase_ == Phase::kGoingBack) {
    return absl::StrCat(going_back_why_, "; going back to clock ", cuts_.newest().value_or(0), ", ",
                        Missing(now));
  }
  if (phase_ == Phase::kSaving) {
    return absl::StrCat("writing the last checkpoint, at clock ", last_clock_);
  }
  if (phase_ != Phase::kRunning && !(failure_.empty() && stop_reason_.empty())) return Ending();
  const std::vector<uint32_t> lost = ranks_.In({RankState::kLost});
  if (lost.empty()) {
    return And(And(And(ResizeMessage(), GraceMessage(now)), LastBatchesMessage()),
               LoadMessage(servers_, options_.job.limits().held_bytes()));
  }
  return absl::StrFormat("%s lost %.0f s ago", ListOf("worker", lost),
                         Seconds(now - ranks_[lost.front()].since));
}

v1::JobStatus CoordinatorCore::Status(Time now) const {
  v1::JobStatus status;
  status.set_name(options_.job.metadata().name());
  status.set_job_id(options_.job_id);
  status.set_state(state());
  status.set_message(StatusMessage(now));
  uint64_t staleness = 0;
  for (uint32_t i = 0; i < ranks_.size(); ++i) {
    v1::WorkerStatus& worker = *status.add_workers();
    progress_[i].Fill(now, worker);
    worker.set_rank(i);
    worker.set_incarnation(ranks_[i].state == RankState::kWaiting ? 0 : ranks_[i].incarnation);
    worker.set_state(RankStateName(ranks_[i].state));
    worker.set_clock(ranks_[i].clock);
    if (ranks_[i].state != RankState::kWaiting) {
      worker.set_seconds_since_heartbeat(Seconds(now - ranks_[i].seen));
    }
    staleness = std::max(staleness, progress_[i].max_staleness());
  }
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    if (!servers_.Wanted(i) && servers_[i].state == ServerState::kWaiting) continue;
    v1::ServerStatus& server = *status.add_servers();
    server.set_index(i);
    server.set_address(servers_[i].address);
    server.set_state(ServerStateName(servers_[i].state));
    *server.mutable_load() = servers_[i].load;
  }
  if (length_) status.set_clocks(length_->clocks());
  status.set_seconds(Seconds(now - began_.value_or(created_)));
  status.set_max_staleness(staleness);
  for (const v1::EvaluationMetrics& metrics : evaluations_) *status.add_evaluations() = metrics;
  status.set_generation(generation_);
  FillData(status);
  status.set_servers_wanted(servers_.wanted());
  if (resizing_) status.set_shards_to_move(placement_.ToMove());
  if (cuts_.newest()) status.set_checkpoint_clock(*cuts_.newest());
  return status;
}

}  // namespace leeway
