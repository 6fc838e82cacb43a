// The job's workers: which processes they are, how far each has come, which of them are on one
// host, what the servers were told about them, and which of them wait to hear that the job is over.
// Owns these facts. The core must report here every sign of life, workers that leave or are lost,
// and when the job goes back.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/commands.h"
#include "server/coordinator/core/host_groups.h"
#include "server/coordinator/core/job_facts.h"
#include "server/coordinator/core/membership.h"
#include "server/coordinator/core/run_progress.h"

namespace leeway {

// Pure; not thread-safe.
class Workers {
 public:
  Workers(const JobFacts& facts, Commands& commands);

  const Membership& ranks() const { return ranks_; }
  HostGroups& groups() { return groups_; }
  const HostGroups& groups() const { return groups_; }
  // Returns the number of ranks that no process has held yet, or that wait for a new life.
  size_t Missing() const;

  // Does the same as Membership::Claim, to which it passes `final`.
  absl::StatusOr<Membership::Claimed> Claim(const v1::RegisterWorkerRequest& request, bool final,
                                            Time now);
  // Returns the rank that the requesting process holds.
  std::optional<uint32_t> Holder(const v1::RegisterWorkerRequest& request) const;
  // Does the same as Membership::Place.
  absl::StatusOr<uint32_t> Place(const v1::RegisterWorkerRequest& request) const;
  // Begins a new life of the rank.
  void Registered(const v1::RegisterWorkerRequest& request, uint32_t rank);
  // Returns true if the rank was lost and is back.
  bool Seen(uint32_t rank, Time now);
  void Report(uint32_t rank, uint64_t clock) { ranks_.Report(rank, clock); }
  void Leave(const v1::LeaveRequest& request, RankState state, Time now);
  void Lose(uint32_t rank, const std::string& why, Time now);
  // Marks each rank as lost whose lease has ended, and returns these ranks.
  std::vector<uint32_t> Expire(Time now) { return ranks_.Expire(now); }
  void Forgive(Time now) { ranks_.Forgive(now); }
  // Sets every rank to `clock` when the job begins.
  void StandAt(uint64_t clock, Time now) { ranks_.GoBack(clock, now); }
  // Takes every rank back to `clock`, because the job has gone back to the cut at clock `cut`.
  void GoBack(uint64_t clock, uint64_t cut, Time now);

  // Returns, by rank, what the servers were last told: true if the rank is live. For new blocks
  // every rank counts as live.
  const std::vector<bool>& live() const { return live_; }
  // Tells the servers whether the rank is live. Returns false, and sends nothing, if the servers
  // know it already.
  bool Tell(uint32_t rank, bool live);
  // Tells the servers again which ranks are not live, because the new owner of a shard assumes that
  // every rank is live. If `all` is true, also tells which ranks are live, because some server has
  // missed commands for a while and may assume that a returned rank is lost.
  void TellAgain(bool all = false);

  // Records what a heartbeat says of the worker's progress. Returns the new evaluations.
  std::vector<v1::EvaluationMetrics> Record(const v1::HeartbeatRequest& request, Time now) {
    return progress_.Record(request, now, commands_);
  }
  void Fill(Time now, v1::JobStatus& status) const;

  // Notes that the rank has left in order, and waits to hear that the job is over.
  void WaitForEnd(uint32_t rank) { leavers_.insert(rank); }
  // Stops waiting for the rank: it has heard that the job is over, or it need not hear it any more.
  // Returns true if the job was waiting for the rank.
  bool StopWaiting(uint32_t rank) { return leavers_.erase(rank) > 0; }
  bool any_waits() const { return !leavers_.empty(); }

 private:
  Commands& commands_;
  Membership ranks_;
  HostGroups groups_;
  std::vector<bool> live_;
  RunProgress progress_;
  std::set<uint32_t> leavers_;
};

}  // namespace leeway
