// The coordinator's decisions: membership, start, stop, cuts, end. The service around it does the
// I/O.
//
// A job's life: starting (servers and workers register; then each server is told to make its
// blocks) -> running -> stopping (workers reach the stop clock and leave) -> saving (the last cut)
// -> shutting the servers down -> over. A failure takes the same way, from wherever the job is.
//
// Where blocks have replicas (placement.h) a lost server's shards go on at once where their
// replicas are, and whoever comes in its place is filled while training goes on.
//
// When a server's blocks are lost otherwise, or in sync mode what a worker keeps between clocks,
// the job goes back, from running, stopping or saving: a new generation begins, all servers load
// the newest complete cut, and who speaks of an older generation is refused until it registers
// anew. Nothing of after the cut survives anywhere, so no block is ahead of another, and in sync
// mode the run ends as if nothing had happened.
//
// The parts below decide, each about its own; none knows of the core. What is here goes through
// several of them: a message is checked, each part that it concerns is told, and Advance() looks
// whether the job enters its next phase.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/checkpoints.h"
#include "server/coordinator/core/command_answer.h"
#include "server/coordinator/core/commands.h"
#include "server/coordinator/core/committed_sets.h"
#include "server/coordinator/core/coordinator_options.h"
#include "server/coordinator/core/data_leases.h"
#include "server/coordinator/core/job_model.h"
#include "server/coordinator/core/lifecycle.h"
#include "server/coordinator/core/message_check.h"
#include "server/coordinator/core/record_book.h"
#include "server/coordinator/core/rollout.h"
#include "server/coordinator/core/server_fleet.h"
#include "server/coordinator/core/shard_assignment.h"
#include "server/coordinator/core/stop_protocol.h"
#include "server/coordinator/core/workers.h"

namespace leeway {

// Pure: no threads, clocks, randomness, I/O. Every input is harmless when repeated. Not
// thread-safe.
//
// Errors, for worker and server alike. ALREADY_EXISTS (registrations): the rank or the whole job
// has ended in order; there is nothing left to do. INVALID_ARGUMENT: the message can never be
// right. FAILED_PRECONDITION: the sender is of another job, generation, model or protocol, or too
// late.
// ABORTED: a newer life of the rank exists. UNAVAILABLE: send the same again; the text says who is
// waited for.
class CoordinatorCore {
 public:
  CoordinatorCore(CoordinatorOptions options, Time now);

  // ---- from workers
  absl::StatusOr<v1::RegisterWorkerReply> RegisterWorker(const v1::RegisterWorkerRequest& request,
                                                         Time now);
  absl::StatusOr<v1::HeartbeatReply> Heartbeat(const v1::HeartbeatRequest& request, Time now);
  // Where the worker is to stop: stop_protocol.h.
  absl::StatusOr<v1::StopAtReply> StopAt(const v1::StopAtRequest& request, Time now);
  absl::StatusOr<v1::LeaveReply> Leave(const v1::LeaveRequest& request, Time now);
  absl::StatusOr<v1::LeaseDataReply> LeaseData(const v1::LeaseDataRequest& request, Time now);
  // May this life hand in its state for the cut at `clock`? To be asked before it is written.
  struct Sender {
    uint64_t job = 0;
    uint64_t generation = 0;
    uint32_t rank = 0;
    uint64_t incarnation = 0;
    uint64_t clock = 0;
  };
  absl::Status CheckWorkerState(const Sender& sender) const;
  absl::Status WorkerStateSaved(const Sender& sender, const v1::SavedShard& file, Time now);
  // Is it the newest life of a rank of this job? To be asked before its state is read.
  absl::Status CheckLife(uint64_t job, uint32_t rank, uint64_t incarnation) const;

  // ---- from servers
  absl::StatusOr<v1::RegisterServerReply> RegisterServer(const v1::RegisterServerRequest& request,
                                                         Time now);
  absl::StatusOr<v1::ServerHeartbeatReply> ServerHeartbeat(
      const v1::ServerHeartbeatRequest& request, Time now);
  // Repeated until the server is released; a new process of its index takes its shards up again.
  absl::StatusOr<v1::DrainServerReply> DrainServer(const v1::DrainServerRequest& request, Time now);
  absl::Status ShardSaved(const v1::ShardSavedRequest& request, Time now);
  absl::Status ContributionsHeld(const v1::ContributionsHeldRequest& request, Time now);

  // ---- from a person
  // Kept on record before anything follows from it. UNAVAILABLE: the job goes back to a checkpoint;
  // else as in coordinator.proto.
  absl::StatusOr<v1::ResizeServersReply> ResizeServers(const v1::ResizeServersRequest& request,
                                                       Time now);
  void StopJob(const std::string& reason, Time now);
  v1::JobStatus Status(Time now) const;

  // ---- from the service: time, and how commands went
  void Tick(Time now);
  // When Wake() is wanted, sooner than the next tick.
  std::optional<Time> alarm() const { return sets_.until(); }
  void Wake(Time now);
  void Answered(const CommandAnswer& answer, Time now);
  // Clocks of the cuts whose folders hold states of workers that a cut to come may name.
  std::set<uint64_t> StateFolders() const { return cuts_.book().StateFolders(); }

  // What is to be done since the last call, in order.
  std::vector<Command> TakeCommands() { return commands_.Take(); }

  // Everything is done: FINISHED, STOPPED or FAILED is final and the servers have been told.
  bool over() const { return life_.phase() == Phase::kOver; }
  v1::JobState state() const { return life_.state(stop_.outcome()); }

 private:
  // coordinator_core.cc
  const JobFacts& facts() const { return model_.facts(); }
  absl::Status CheckSender(const Sender& sender) const;
  absl::Status CheckGeneration(uint64_t generation, const std::string& who) const;
  uint64_t LargestClock() const { return model_.LargestClock(leases_.by_batches()); }
  MessageLimits Limits() const;
  absl::StatusOr<uint64_t> FixStop(const v1::StopAtRequest& request);
  uint64_t FixStopHere();
  absl::Status TakeLeave(const v1::LeaveRequest& request, Time now);
  // What the worker has reported of its loss scale; UNAVAILABLE until it is on record.
  absl::Status RecordLossScales(const v1::HeartbeatRequest& request);
  // The same of the fact that programs keep state.
  absl::Status RecordKeptState(const v1::HeartbeatRequest& request);
  void SignOfLife(uint32_t rank, Time now);
  void TellLive(uint32_t rank, bool live, Time now);
  void CommitNextSet(Time now);
  // New ones of the rank that evaluates.
  void Take(const std::vector<v1::EvaluationMetrics>& evaluations, Time now);
  void Take(const ConfigureDone& done, Time now);
  void Take(const SaveDone& done, Time now);
  void Take(const RecordDone& done, Time now);
  void Take(const ManifestWritten& written, Time now);
  void Take(const ShutdownDone& done, Time now);
  void Take(const ServerGone& gone, Time now);
  void Take(const RunFolderGone& gone, Time now) { Abort(gone.why, now); }

  // coordinator_registration.cc
  absl::StatusOr<uint32_t> Admit(const v1::RegisterWorkerRequest& request, const std::string& who,
                                 Time now);
  absl::Status RefusedAtTheEnd() const;
  absl::Status RefuseLate(const v1::RegisterWorkerRequest& request, Time now);
  // A new life's incarnation is on record before its worker hears of it.
  void RecordIncarnation(uint64_t incarnation);
  // For who reads the weights and takes no part.
  absl::StatusOr<v1::RegisterWorkerReply> ReaderReply(Time now) const;
  // What is the same for all.
  v1::RegisterWorkerReply ModelReply() const;
  v1::RegisterWorkerReply WorkerReply(uint32_t rank) const;

  // coordinator_going_back.cc
  // The blocks of a server are lost.
  void GoBack(const std::string& why, Time now);
  void AdvanceGoingBack(Time now);
  void GoOn(Time now);
  // A clock has a set, and some shard will never get all of it: goes back.
  void MakeUpForLost(Time now);
  // `awaited`: what comes after it is done once it is durable.
  void WriteDown(v1::JobState outcome, bool awaited = true);
  v1::CoordinatorRecord Record(v1::JobState outcome) const;
  // That of the coordinator before, if nobody has been told anything new.
  v1::CoordinatorRecord RecordOfStop() const;
  // This generation and this placement are on record: until then nobody is told of them.
  bool OnRecord() const { return record_.Has(life_.generation(), shards_.places().epoch()); }

  // coordinator_servers.cc
  // The process is the server of its index from now on, if one is wanted; what another one held
  // under it is lost.
  absl::Status TakeProcess(const v1::RegisterServerRequest& request, Time now);
  // An index that is wanted, or whose blocks are needed still. ALREADY_EXISTS: the job goes on
  // without it; UNAVAILABLE: nobody has asked for it yet.
  absl::Status CheckWanted(const v1::RegisterServerRequest& request, const std::string& who,
                           Time now);
  void ExpireServers(Time now);
  // Those whose shards are nowhere else are waited for, in the same generation, for so long.
  void GiveUpHolders(Time now);
  // A sign of life; of one that was lost, too.
  void Return(uint32_t server, Time now);
  v1::ServerHeartbeatReply ServerReply(bool wants_incarnations) const;

  // coordinator_placement.cc
  // True: every shard of the server lives on elsewhere, in a new epoch that the servers must hear
  // of (Reassign).
  bool Survives(uint32_t server);
  // Tells every server who holds what now; those in `first`, and once they have heard it the rest.
  void Reassign(const std::string& why, Time now, const std::set<uint32_t>& first = {});
  void SendPlacement(Time now);
  v1::ConfigureRequest Configuration(bool load) const;
  // A server that was to make its blocks has, or could not.
  void TakeMade(const ConfigureDone& done, Time now);
  void TakeSynced(const v1::ServerHeartbeatRequest& request, Time now);
  absl::Status CheckResize(uint32_t servers, Time now) const;
  // So many are to be there, and the shards move to them.
  void WantServers(uint32_t servers, Time now);
  // Moves shards to where they are to be, as far as is possible now, and lets servers go that hold
  // nothing any more.
  void Rebalance(Time now);
  std::string WhyShardsMove() const;
  // Lets go of those that are not wanted and hold nothing (while the job is under way).
  void RemoveIdle();

  // coordinator_drain.cc
  // Why the server may leave with what it holds: nobody can take it. Empty: somebody can.
  std::string CannotDrain(uint32_t server) const;
  // Others hold what it held, wholly, and know it.
  bool Released(uint32_t server) const;
  // With servers.max: drained servers of the highest indices are not waited for any more.
  void LetGoOfDrained(Time now);
  // With servers.max: a server that comes after the last one is wanted from now on. False: it is
  // not.
  bool GrowFor(const v1::RegisterServerRequest& request, Time now);

  // coordinator_cuts.cc
  absl::Status AddShard(uint32_t shard, uint64_t clock, const absl::StatusOr<v1::SavedShard>& file,
                        Time now);
  void WriteWholeCut();
  bool saving() const { return life_.phase() == Phase::kSaving; }

  // coordinator_start.cc
  void AdvanceStart(Time now);
  bool EnoughWorkers(Time now) const;
  // Servers that are not wanted, hold what this coordinator's predecessor has recorded, and are
  // waited for, for a lease.
  std::vector<uint32_t> HoldersMissing(Time now) const;
  void ChooseCodec();
  void FixLength(Time now);
  // Goes on with what the servers still hold of before this coordinator; false: they hold too
  // little.
  bool TakeUp(Time now);
  // Every server makes its shards anew.
  void Configure(Time deadline, Time now);
  void Begin(Time now);

  // coordinator_end.cc
  void AdvanceStopping(Time now);
  void AdvanceSaving(Time now);
  void BeginStopping(Time now);
  // By the evaluations so far (early_stop.h).
  void EndEarlyIfDue(Time now);
  void BeginSaving(Time now);
  void BeginShutdown(Time now);
  void Fail(const std::string& why, Time now);
  // Going on with the job would fail again.
  void FailForGood(const std::string& why, Time now);
  // Nobody reaches a stop clock any more: break everything off.
  void Abort(const std::string& why, Time now);
  void GiveUpLost(Time now);
  bool Gone(uint32_t rank, Time now) const;
  bool AllGone(Time now) const;
  uint64_t LastClock() const;
  // The job's exchanges are all made.
  bool Complete() const;
  v1::JobState Outcome() const;
  // Of those who had something to do.
  bool AnyFinished() const;

  // coordinator_time.cc
  void Advance(Time now);
  // One more lease for all, where it may be this process that hears nobody.
  void Doubt(Time now);
  void ExpireWorkers(Time now);
  // Nobody waits for it any more who need not.
  void Lose(uint32_t rank, const std::string& why, Time now);

  // job_status.cc
  // "waiting for workers 1, 2 and server 1 to register (12 s of 120 s)".
  std::string Missing(Time now) const;
  std::string StatusMessage(Time now) const;
  // A server that is silent, and that the job waits for; empty: there is none.
  std::string LostHolder(Time now) const;

  Commands commands_;
  JobModel model_;
  Lifecycle life_;
  RecordBook record_;
  StopProtocol stop_;
  Workers workers_;
  ServerFleet fleet_;
  ShardAssignment shards_;
  Rollout rollout_;
  Checkpoints cuts_;
  CommittedSets sets_;
  DataLeases leases_;
};

}  // namespace leeway
