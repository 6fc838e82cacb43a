// The job's workers: who they are, how far they are, which of them are on one host, what the
// servers were told of them, and who of them waits to hear that the job is over. Owns these; must
// be told of every sign of life, of who leaves or is lost, and when the job goes back.
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
  // Nobody has held the rank yet, or it waits for a new life.
  size_t Missing() const;

  // As Membership::Claim. `final`: who has left in order has left for good.
  absl::StatusOr<Membership::Claimed> Claim(const v1::RegisterWorkerRequest& request, bool final,
                                            Time now);
  // The process that asks for a rank holds this one.
  std::optional<uint32_t> Holder(const v1::RegisterWorkerRequest& request) const;
  // As Membership::Place.
  absl::StatusOr<uint32_t> Place(const v1::RegisterWorkerRequest& request) const;
  // A new life of the rank begins.
  void Registered(const v1::RegisterWorkerRequest& request, uint32_t rank);
  // True: the rank was lost, and is back.
  bool Seen(uint32_t rank, Time now);
  void Report(uint32_t rank, uint64_t clock) { ranks_.Report(rank, clock); }
  void Leave(const v1::LeaveRequest& request, RankState state, Time now);
  void Lose(uint32_t rank, const std::string& why, Time now);
  // Ranks whose lease has ended; they are lost now.
  std::vector<uint32_t> Expire(Time now) { return ranks_.Expire(now); }
  void Forgive(Time now) { ranks_.Forgive(now); }
  // Every rank stands at `clock`, where the job begins.
  void StandAt(uint64_t clock, Time now) { ranks_.GoBack(clock, now); }
  // The job has gone back to the cut at `cut`, and every rank to `clock`.
  void GoBack(uint64_t clock, uint64_t cut, Time now);

  // By rank: what the servers were last told. New blocks hold everybody up for everybody.
  const std::vector<bool>& live() const { return live_; }
  // False: they were told so before.
  bool Tell(uint32_t rank, bool live);
  // A shard that has changed hands holds everybody up for everybody. `all`: some server has heard
  // nothing for a while, and may take for lost who is back.
  void TellAgain(bool all = false);

  // What a heartbeat says of how far the worker is. The evaluations that are new.
  std::vector<v1::EvaluationMetrics> Record(const v1::HeartbeatRequest& request, Time now) {
    return progress_.Record(request, now, commands_);
  }
  void Fill(Time now, v1::JobStatus& status) const;

  // The rank has left in order, and waits to hear that the job is over.
  void WaitForEnd(uint32_t rank) { leavers_.insert(rank); }
  // True: it waited, and has heard it, or is not waited for any more.
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
