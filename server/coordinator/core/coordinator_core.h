// The coordinator's decisions: membership, start, stop, cuts, end. The host around it does the I/O.
//
// A job's life:
// - Starting: servers and workers register; then each server is told to make its blocks.
// - Running.
// - Stopping: workers reach the stop clock and leave.
// - Saving: the servers take the last cut.
// - Shutdown: the servers are told that the job is over.
// - Over.
// A job that fails goes through the same phases, beginning with the phase that it is in.
//
// If blocks have replicas (placement.h), a lost server's shards continue at once on the servers of
// their replicas. Another server may replace the lost one; it receives its blocks while training
// goes on.
//
// The job goes back when a server's blocks are lost and have no replicas, or, in sync mode, when
// the state that a worker keeps between clocks is lost. It can go back from running, stopping or
// saving. A new generation begins, and all servers load the newest complete cut. A process that
// still uses an older generation is refused until it registers again. Nothing newer than the cut
// survives anywhere, so no block is ahead of another, and in sync mode the run ends as if nothing
// had happened.
//
// Each part below decides about its own fields, and no part knows of the core. The core checks each
// message and passes it to the parts that it concerns. Then Advance() checks whether the job enters
// its next phase.
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

// Pure: no threads, clocks, randomness or I/O. An input may be repeated without harm. Not
// thread-safe.
//
// Errors, for workers and servers alike:
// - ALREADY_EXISTS (registrations): the rank or the whole job has ended in order; there is nothing
//   left to do.
// - INVALID_ARGUMENT: the message can never be right.
// - FAILED_PRECONDITION: the sender belongs to another job, generation, model or protocol, or is
//   too late.
// - ABORTED: a newer life of the rank exists.
// - UNAVAILABLE: send the same message again. The error's message says for which processes the
//   coordinator waits.
class CoordinatorCore {
 public:
  CoordinatorCore(CoordinatorOptions options, Time now);

  // ---- from workers
  absl::StatusOr<v1::RegisterWorkerReply> RegisterWorker(const v1::RegisterWorkerRequest& request,
                                                         Time now);
  absl::StatusOr<v1::HeartbeatReply> Heartbeat(const v1::HeartbeatRequest& request, Time now);
  // Returns the clock at which the worker stops (stop_protocol.h).
  absl::StatusOr<v1::StopAtReply> StopAt(const v1::StopAtRequest& request, Time now);
  absl::StatusOr<v1::LeaveReply> Leave(const v1::LeaveRequest& request, Time now);
  absl::StatusOr<v1::LeaseDataReply> LeaseData(const v1::LeaseDataRequest& request, Time now);
  // The sender of a worker's state, for the cut at `clock`.
  struct Sender {
    uint64_t job = 0;
    uint64_t generation = 0;
    uint32_t rank = 0;
    uint64_t incarnation = 0;
    uint64_t clock = 0;
  };
  // Checks that this life may hand in its state for the cut at `clock`. Call this function before
  // the state is written.
  absl::Status CheckWorkerState(const Sender& sender) const;
  absl::Status WorkerStateSaved(const Sender& sender, const v1::SavedShard& file, Time now);
  // Checks that this is the newest life of a rank of this job. Call this function before the rank's
  // state is read.
  absl::Status CheckLife(uint64_t job, uint32_t rank, uint64_t incarnation) const;

  // ---- from servers
  absl::StatusOr<v1::RegisterServerReply> RegisterServer(const v1::RegisterServerRequest& request,
                                                         Time now);
  absl::StatusOr<v1::ServerHeartbeatReply> ServerHeartbeat(
      const v1::ServerHeartbeatRequest& request, Time now);
  // Begins to move the shards of a leaving server to other servers. The server repeats the call
  // until the reply releases the server. A new process with the same index can hold shards again.
  absl::StatusOr<v1::DrainServerReply> DrainServer(const v1::DrainServerRequest& request, Time now);
  absl::Status ShardSaved(const v1::ShardSavedRequest& request, Time now);
  absl::Status ContributionsHeld(const v1::ContributionsHeldRequest& request, Time now);

  // ---- from a person
  // Changes the number of servers. The core puts the new number on record before it acts on it.
  // Returns UNAVAILABLE while the job is going back to a checkpoint. coordinator.proto lists the
  // other errors.
  absl::StatusOr<v1::ResizeServersReply> ResizeServers(const v1::ResizeServersRequest& request,
                                                       Time now);
  void StopJob(const std::string& reason, Time now);
  v1::JobStatus Status(Time now) const;

  // ---- from the host: time, and how commands went
  void Tick(Time now);
  // Returns the time at which the host must call Wake(), if Wake() is needed before the next tick.
  std::optional<Time> alarm() const { return sets_.until(); }
  void Wake(Time now);
  void Answered(const CommandAnswer& answer, Time now);
  // Returns the clocks of folders with workers' states that a future cut may name.
  std::set<uint64_t> StateFolders() const { return cuts_.book().StateFolders(); }

  // Returns the commands since the last call, in order.
  std::vector<Command> TakeCommands() { return commands_.Take(); }

  // True when everything is done: the state FINISHED, STOPPED or FAILED is final, and the servers
  // have been told.
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
  // Records the worker's loss scale. Returns UNAVAILABLE until the loss scale is on record.
  absl::Status RecordLossScales(const v1::HeartbeatRequest& request);
  // Records that the worker's program keeps state. Returns UNAVAILABLE until this is on record.
  absl::Status RecordKeptState(const v1::HeartbeatRequest& request);
  void SignOfLife(uint32_t rank, Time now);
  void TellLive(uint32_t rank, bool live, Time now);
  void CommitNextSet(Time now);
  // Takes new evaluations of the rank that evaluates.
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
  // Puts the incarnation of a new life on record before the worker learns it.
  void RecordIncarnation(uint64_t incarnation);
  // The reply to a process that reads the weights and takes no part in the job.
  absl::StatusOr<v1::RegisterWorkerReply> ReaderReply(Time now) const;
  // The part of the reply that is the same for all workers and readers.
  v1::RegisterWorkerReply ModelReply() const;
  v1::RegisterWorkerReply WorkerReply(uint32_t rank) const;

  // coordinator_going_back.cc
  // Goes back because blocks of a server, or the state of a worker, are lost.
  void GoBack(const std::string& why, Time now);
  void AdvanceGoingBack(Time now);
  void GoOn(Time now);
  // Goes back if a clock has a committed set, but some shard will never get all contributions of
  // that set.
  void MakeUpForLost(Time now);
  // Writes a record. If `awaited`, later commands wait until the record is durable.
  void WriteDown(v1::JobState outcome, bool awaited = true);
  v1::CoordinatorRecord Record(v1::JobState outcome) const;
  // Returns a record that contains a requested stop. If no process has been told anything newer
  // than the previous coordinator's record, returns that record with the reason of the stop.
  v1::CoordinatorRecord RecordOfStop() const;
  // Returns true if the present generation and placement are on record. No process is told of them
  // earlier.
  bool OnRecord() const { return record_.Has(life_.generation(), shards_.places().epoch()); }

  // coordinator_servers.cc
  // Returns INVALID_ARGUMENT if only a worker's process may be this server.
  absl::Status CheckProcess(const v1::RegisterServerRequest& request, const std::string& who) const;
  // If the request's index is wanted, makes the process the server with that index. If another
  // process had that index, the blocks that it held are lost.
  absl::Status TakeProcess(const v1::RegisterServerRequest& request, Time now);
  // Checks that the index is wanted, or that the blocks of the server with this index are still
  // needed. Returns ALREADY_EXISTS if the job continues without this server, and UNAVAILABLE if
  // nobody has asked for this server yet.
  absl::Status CheckWanted(const v1::RegisterServerRequest& request, const std::string& who,
                           Time now);
  void ExpireServers(Time now);
  // Stops waiting for lost servers that hold the only copy of a shard and have not come back within
  // a limit.
  void GiveUpHolders(Time now);
  // Records a sign of life of a server, which may have been lost.
  void Return(uint32_t server, Time now);
  v1::ServerHeartbeatReply ServerReply(bool wants_incarnations) const;

  // coordinator_placement.cc
  // Moves the shards of a lost server to their replicas. Returns false if a shard has no replica to
  // move to. After true the placement has a new epoch, which the caller announces (Reassign).
  bool Survives(uint32_t server);
  // Tells every server which server holds which shard now. The servers in `first` must have
  // received this message before it goes to the others.
  void Reassign(const std::string& why, Time now, const std::set<uint32_t>& first = {});
  void SendPlacement(Time now);
  v1::ConfigureRequest Configuration(bool load) const;
  // Handles the answer of a server that was told to make its blocks.
  void TakeMade(const ConfigureDone& done, Time now);
  void TakeSynced(const v1::ServerHeartbeatRequest& request, Time now);
  absl::Status CheckResize(uint32_t servers, Time now) const;
  // Changes the number of servers to `servers`, and moves the shards to them.
  void WantServers(uint32_t servers, Time now);
  // Moves shards to their homes, as far as that is possible now, and releases servers that do not
  // hold any shard any more.
  void Rebalance(Time now);
  std::string WhyShardsMove() const;
  // While the job is under way, releases servers that are not wanted and hold nothing.
  void RemoveIdle();

  // coordinator_drain.cc Returns the reason why no other server can take over the shards of this
  // server; empty if another server can.
  std::string CannotDrain(uint32_t server) const;
  // Returns true if other servers hold all shards that this server held, and have been told so.
  bool Released(uint32_t server) const;
  // With servers.max, stops waiting for drained servers with the highest indices.
  void LetGoOfDrained(Time now);
  // With servers.max, makes a new server wanted if its index follows the last wanted index. Returns
  // false if the server stays unwanted.
  bool GrowFor(const v1::RegisterServerRequest& request, Time now);

  // coordinator_cuts.cc
  absl::Status AddShard(uint32_t shard, uint64_t clock, const absl::StatusOr<v1::SavedShard>& file,
                        Time now);
  void WriteWholeCut();
  bool saving() const { return life_.phase() == Phase::kSaving; }

  // coordinator_start.cc
  void AdvanceStart(Time now);
  bool EnoughWorkers(Time now) const;
  // Returns servers that are not wanted, but hold shards according to the previous coordinator's
  // record. The coordinator waits one lease for them.
  std::vector<uint32_t> HoldersMissing(Time now) const;
  void ChooseCodec();
  void FixLength(Time now);
  // Returns true if other processes may still hold every block after server 0 has died.
  bool OutlivesCoordinator() const;
  // Continues with the blocks that the servers have held since the time of the previous
  // coordinator. Returns false if blocks are missing.
  bool TakeUp(Time now);
  // Tells every server to make its shards anew.
  void Configure(Time deadline, Time now);
  // `goes_on` is true if the job goes on where it is. Otherwise it begins at a checkpoint or anew.
  void Begin(Time now, bool goes_on = false);

  // coordinator_end.cc
  void AdvanceStopping(Time now);
  void AdvanceSaving(Time now);
  void BeginStopping(Time now);
  // Ends the job early if the evaluations so far require it (early_stop.h).
  void EndEarlyIfDue(Time now);
  void BeginSaving(Time now);
  void BeginShutdown(Time now);
  void Fail(const std::string& why, Time now);
  // Fails, and records that a restart of the job would fail again.
  void FailForGood(const std::string& why, Time now);
  // Ends the job without a stop clock, because no worker can reach one any more.
  void Abort(const std::string& why, Time now);
  void GiveUpLost(Time now);
  bool Gone(uint32_t rank, Time now) const;
  bool AllGone(Time now) const;
  uint64_t LastClock() const;
  // True if all exchanges of the job are complete.
  bool Complete() const;
  v1::JobState Outcome() const;
  // Returns true if a worker that had something to do has finished.
  bool AnyFinished() const;

  // coordinator_time.cc
  void Advance(Time now);
  // Gives all processes one more lease if this process hears hardly any other process, because the
  // fault is then probably in this process.
  void Doubt(Time now);
  void ExpireWorkers(Time now);
  // Marks the rank as lost. Nobody waits for a lost rank any more, unless the job needs it.
  void Lose(uint32_t rank, const std::string& why, Time now);

  // job_status.cc
  // Returns a message such as "waiting for workers 1, 2 and server 1 to register (12 s of 120 s)".
  std::string Missing(Time now) const;
  std::string StatusMessage(Time now) const;
  // Returns a message about a silent server for which the job waits; empty if there is no such
  // server.
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
