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
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/command.h"
#include "server/coordinator/coordinator_options.h"
#include "server/coordinator/cut_book.h"
#include "server/coordinator/lease_book.h"
#include "server/coordinator/membership.h"
#include "server/coordinator/placement.h"
#include "server/coordinator/progress.h"
#include "server/coordinator/quorum_book.h"
#include "server/coordinator/server_table.h"
#include "server/coordinator/straggler_grace.h"

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
  // In sync mode the first asker, at clock c, fixes the stop for all at c + 1: nobody can have
  // passed that, for exchange c is not complete without the asker. With committed sets all stop at
  // the first clock that has none. Otherwise each stops where it is.
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
  absl::Status CheckWorkerState(const Sender& sender) const { return CheckSender(sender); }
  absl::Status WorkerStateSaved(const Sender& sender, const v1::SavedShard& file, Time now);

  // ---- from servers
  absl::StatusOr<v1::RegisterServerReply> RegisterServer(const v1::RegisterServerRequest& request,
                                                         Time now);
  absl::StatusOr<v1::ServerHeartbeatReply> ServerHeartbeat(
      const v1::ServerHeartbeatRequest& request, Time now);
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
  std::optional<Time> alarm() const { return grace_.until(); }
  void Wake(Time now) {
    if (alarm() && now >= *alarm()) CommitSets(now);
  }
  void ConfigureDone(uint32_t server, uint64_t round, const absl::Status& status, Time now);
  void SaveDone(uint32_t shard, uint64_t round, uint64_t clock,
                const absl::StatusOr<v1::SavedShard>& saved, Time now);
  void RecordDone(const v1::CoordinatorRecord& record, const absl::Status& status, Time now);
  void ManifestWritten(uint64_t clock, const absl::Status& status, Time now);
  void ShutdownDone(uint32_t server, Time now);
  // Clocks of the cuts whose folders hold states of workers that a cut to come may name.
  std::set<uint64_t> StateFolders() const { return cuts_.StateFolders(); }

  // What is to be done since the last call, in order.
  std::vector<Command> TakeCommands();

  absl::Status CheckJob(uint64_t job) const;
  uint32_t workers() const { return ranks_.size(); }
  uint64_t job_id() const { return options_.job_id; }
  // Everything is done: FINISHED, STOPPED or FAILED is final and the servers have been told.
  bool over() const { return phase_ == Phase::kOver; }
  v1::JobState state() const;

 private:
  // For the servers to hear that the job is over.
  static constexpr Duration kShutdownLimit = std::chrono::seconds(5);

  enum class Phase { kStarting, kGoingBack, kRunning, kStopping, kSaving, kShutdown, kOver };

  // coordinator_core.cc
  absl::Status CheckPeer(const v1::Build& build, const std::string& who) const;
  absl::Status CheckSender(const Sender& sender) const;
  absl::Status CheckGeneration(uint64_t generation, const std::string& who) const;
  // The clock at which all stop, once there is one.
  std::optional<uint64_t> StopClock() const;
  absl::StatusOr<uint64_t> FixStop(const v1::StopAtRequest& request);
  void Record(const v1::HeartbeatRequest& request, Time now);
  absl::Status TakeLeave(const v1::LeaveRequest& request, Time now);
  void SignOfLife(uint32_t rank, Time now);
  void TellLive(uint32_t rank, bool live, Time now);
  uint64_t LargestClock() const;

  // coordinator_registration.cc
  absl::Status CheckModel(const v1::RegisterWorkerRequest& request, const std::string& who) const;
  absl::StatusOr<uint32_t> Admit(const v1::RegisterWorkerRequest& request, const std::string& who,
                                 Time now);
  absl::Status RefusedAtTheEnd() const;
  absl::Status RefuseLate(const v1::RegisterWorkerRequest& request, Time now);
  void TakeModel(const v1::RegisterWorkerRequest& request, const std::string& who, uint32_t rank);
  v1::RegisterWorkerReply WorkerReply(uint32_t rank) const;

  // coordinator_going_back.cc
  // The blocks of a server are lost.
  void GoBack(const std::string& why, Time now);
  void AdvanceGoingBack(Time now);
  void GoOn(Time now);
  v1::CoordinatorRecord Record(v1::JobState outcome) const;
  // This generation and this placement are on record: until then nobody is told of them, for a
  // coordinator started again would not know them, and might say something else.
  bool OnRecord() const { return recorded_ >= std::pair(generation_, placement_.epoch()); }
  // That of the coordinator before, if nobody has been told anything new.
  v1::CoordinatorRecord RecordOfStop() const;
  // Where every rank stands for certain after a restart. Outside of sync a cut's clock is a mean.
  uint64_t CutClock() const;

  // coordinator_placement.cc
  bool replicated() const { return options_.job.servers().replicas() > 1; }
  // True: every shard of the server lives on elsewhere, in a new epoch that the servers must hear
  // of (Reassign).
  bool Survives(uint32_t server);
  // Tells every server who holds what now; those in `first`, and once they have heard it the rest.
  void Reassign(const std::string& why, Time now, std::set<uint32_t> first = {});
  // To those that are here, but for `without`.
  void SendPlacement(const std::set<uint32_t>& without, Time now);
  // Goes on with what the servers still hold of before this coordinator; false: they hold too
  // little.
  bool TakeUp(Time now);
  // The process that holds what the record before gives to the server.
  bool HoldsAsRecorded(uint32_t server) const;
  void TakeSynced(const v1::ServerHeartbeatRequest& request, Time now);
  std::vector<uint32_t> Owners() const;
  // By shard, for workers.
  template <typename Reply>
  void FillServers(Reply& reply) const;

  // coordinator_resize.cc
  absl::Status CheckResize(uint32_t servers) const;
  // An index that is wanted, or whose blocks are needed still. ALREADY_EXISTS: the job goes on
  // without it; UNAVAILABLE: nobody has asked for it yet.
  absl::Status CheckWanted(const v1::RegisterServerRequest& request, const std::string& who,
                           Time now);
  // Moves shards to where they are to be, as far as is possible now, and lets servers go that hold
  // nothing any more.
  void Rebalance(Time now);
  // Lets go of those that are not wanted and hold nothing (while the job is under way).
  void RemoveIdle();
  // Servers that are not wanted, hold what this coordinator's predecessor has recorded, and are
  // waited for, for a lease.
  std::vector<uint32_t> HoldersMissing(Time now) const;
  // "3 shards to move, to 4 servers and waiting for server 3"; empty where nothing moves.
  std::string ResizeMessage() const;

  // coordinator_quorum.cc
  // Every block is at the newest cut.
  void RestartQuorum();
  void CommitSets(Time now);
  bool MayCommit() const;
  void Commit(CommitSet set);
  // The latest set, for who has taken a shard over.
  void CommitAgain();
  // Of the shards that have changed hands since this epoch.
  void ForgetHeld(uint64_t epoch);
  // A rank that the latest set names, and whose contribution some shard will never get.
  std::optional<uint32_t> LostContribution() const;
  // The clock of that set can never be completed: goes back.
  void MakeUpForLost(Time now);
  // By rank: a clock is complete with these.
  std::vector<bool> Wanted() const;
  // "clock 17 could do without worker 3 and waits for it, 0.04 s more"; empty if it does not.
  std::string GraceMessage(Time now) const;
  uint64_t FixStopHere();

  // coordinator_servers.cc
  // The process is the server of its index from now on, if one is wanted; what another one held
  // under it is lost.
  absl::Status TakeProcess(const v1::RegisterServerRequest& request, Time now);
  absl::Status AddShard(uint32_t shard, uint64_t clock, const absl::StatusOr<v1::SavedShard>& file,
                        Time now);
  void ExpireServers(Time now);
  // A sign of life; of one that was lost, too.
  void Return(uint32_t server, Time now);
  CutBook::Needs Needs() const;
  // "shard 1 (server 0)": who has it.
  std::string ShardName(uint32_t shard) const;
  // Of a cut: "shard 1 (server 0), the state of worker 2"; empty if it is whole.
  std::string MissingParts(uint64_t clock) const;
  void WriteWholeCut();

  // coordinator_leases.cc
  // Once the job's length is known. FAILED_PRECONDITION where nobody says how many batches make a
  // pass, or the checkpoint says another number; else LeaseBook::Restore's.
  absl::Status OpenLeases();
  absl::Status RestoreLeases();
  absl::Status CheckBatches(const v1::RegisterWorkerRequest& request, const std::string& who) const;
  void TakeDone(const v1::LeaseDataRequest& request);
  void TakeBackLeases(uint32_t rank);
  // What the cut of these shards has, for its manifest, which is then durable or never will be.
  void AddData(uint64_t clock, const std::vector<v1::SavedShard>& shards,
               v1::CheckpointManifest& manifest);
  void DataWritten(uint64_t clock, bool durable);
  void FillData(v1::JobStatus& status) const;
  // "the last 3 batches are with workers 1, 2"; empty if there are more.
  std::string LastBatchesMessage() const;

  // coordinator_lifecycle.cc
  void Advance(Time now);
  void AdvanceStart(Time now);
  bool EnoughWorkers(Time now) const;
  // As the record of the coordinator before this one says; 0: its job had not begun.
  uint64_t StepsBefore() const;
  void AdvanceRunning(Time now);
  void AdvanceStopping(Time now);
  void AdvanceSaving(Time now);
  void ComputeLength(Time now);
  void ChooseAutoCodec();
  // Every server makes its shards anew.
  void Configure(Time deadline, Time now);
  v1::ConfigureRequest Configuration(bool load) const;
  void Begin(Time now);
  void BeginStopping(Time now);
  void BeginSaving(Time now);
  void BeginShutdown(Time now);
  void Fail(const std::string& why, Time now);
  // Nobody reaches a stop clock any more: break everything off.
  void Abort(const std::string& why, Time now);
  bool Gone(uint32_t rank, Time now) const;
  // Sync mode: the rank has completed all that the others need of it.
  bool ReachedStop(uint32_t rank) const;
  bool AllGone(Time now) const;
  void GiveUpLost(Time now);
  uint64_t LastClock() const;
  // The job's exchanges are all made.
  bool Complete() const;
  v1::JobState Outcome() const;
  size_t WorkersMissing() const;
  // "waiting for workers 1, 2 and server 1 to register (12 s of 120 s)"; empty if nobody is
  // missing.
  std::string Missing(Time now) const;
  std::string Ending() const;
  std::string StatusMessage(Time now) const;
  void ExpireRanks(Time now);
  // Nobody waits for it any more who need not.
  void Lose(uint32_t rank, const std::string& why, Time now);

  bool sync() const;
  // Sync, and no clock is complete without everybody.
  bool lockstep() const { return sync() && !commits_sets_; }
  Duration start_limit() const;
  void Emit(Event event) { commands_.push_back(std::move(event)); }

  // Constant but for what `auto` stands for.
  CoordinatorOptions options_;
  const Duration lease_;
  const Time created_;
  // Sync, and this coordinator says whose contributions a clock is made of.
  const bool commits_sets_;

  Phase phase_ = Phase::kStarting;
  Membership ranks_;
  ServerTable servers_;
  Placement placement_;
  // Must have heard of the placement before the others do; and those who have.
  std::set<uint32_t> first_;
  std::set<uint32_t> heard_;
  // Another number of servers was asked for, and not everything is where it is to be.
  bool resizing_ = false;
  CutBook cuts_;
  QuorumBook quorum_;
  // A shard may lack something of the latest set: it has changed hands since, or has refused a
  // contribution.
  bool latest_lacks_ = false;
  StragglerGrace grace_;
  LinkBook links_;
  // Where data is leased, once the job's length is known.
  std::optional<LeaseBook> leases_;
  uint64_t batches_per_epoch_ = 0;
  // By clock: what cuts whose manifest is in writing have of the data; and what the newest durable
  // one has.
  struct DataCut {
    std::vector<uint64_t> clocks;
    v1::DataProgress progress;
  };
  std::map<uint64_t, DataCut> data_cuts_;
  std::optional<v1::DataProgress> newest_data_;
  std::vector<RankProgress> progress_;
  // By rank: batches in a pass over its data, 0 if it did not say.
  std::vector<uint64_t> steps_per_epoch_;
  // By rank: what the servers were last told.
  std::vector<bool> live_;
  std::vector<v1::EvaluationMetrics> evaluations_;

  // The model: absent until the first worker brings it (or the checkpoint does).
  std::optional<v1::ModelSchema> schema_;
  std::string schema_owner_;
  uint64_t block_elements_ = 0;
  // Known once the servers are told to make their blocks.
  std::optional<v1::JobLength> length_;
  uint64_t cut_every_ = 0;
  // The servers know of the model in this round.
  bool configuring_ = false;
  uint64_t round_ = 0;
  uint64_t generation_ = 0;
  // Since when the job is going back, and why.
  Time going_back_since_;
  std::string going_back_why_;
  // What this coordinator's durable records say: that the job has begun, and the newest generation
  // and epoch of the placement.
  bool recorded_begun_ = false;
  std::pair<uint64_t, uint64_t> recorded_;
  // The record says how the job has ended.
  bool sealed_ = false;
  // Left in order, and wait to hear that the job is sealed.
  std::set<uint32_t> waiting_leavers_;

  // When exchanges could begin.
  std::optional<Time> began_;
  std::string stop_reason_;
  // Not empty: the job fails, with this.
  std::string failure_;
  // Sync mode: the clock at which all stop. Falls when the job fails, never otherwise moves.
  std::optional<uint64_t> stop_at_;
  bool aborted_ = false;
  // The last cut, in kSaving.
  uint64_t last_clock_ = 0;
  // How often it was asked for (SaveAll).
  uint64_t saves_ = 0;
  Time deadline_;
  v1::JobState outcome_ = v1::JOB_FAILED;
  Time last_tick_;

  std::vector<Command> commands_;
};

}  // namespace leeway
