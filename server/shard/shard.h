// One server's share of the model: for each block a BlockCore that decides and its values in the
// BlockStore, under that block's own lock. Blocks have no lock in common.
//
// A walk through one exchange of one block, by the functions that hand it on: a PushPull on a
// stream, values as they are, sync mode, the last contribution of its clock. Fifteen calls, no
// change of threads; the values are read where the network left them.
//    1. StreamSession::OnRead       a frame has come; its requests one after the other
//    2. DecodeRequestFrame          protobuf reads the heads, payloads stay in their slices
//    3. ByteBudget::Hold            the frame's memory counts until its last payload is gone
//    4. StreamSession::Ask          one request
//    5. ShardTable::Admit           which shard; whether its sender and its bytes are admitted
//    6. FramePayload::Take          its values
//    7. Shard::Contribute           takes the block's lock, after
//    8. RequestCheck::Open          the block is here, the rank is one, the size is right
//    9. BlockCore::OnContribution   accepts it, or finds it a duplicate, or refuses it
//   10. Shard::Act                  does, still under the lock, what was decided: references for
//                                   those who are answered now, the update's contributions
//   11. Shard::Finish               without the lock: sends answers, starts the update
//   12. Shard::Run                  weighs the contributions and chooses the next version's memory.
//                                   After 13 it takes the lock, makes the result the current
//                                   version (BlockStore::Commit), and BlockCore::OnApplied releases
//                                   the readers of the next clock: Act and Finish once more
//   13. BlockStore::Run             combines the contributions in rank order and applies the rule,
//                                   from the received slices into the next version
//   14. StreamSession::Answer       to each of the clock's workers
//   15. UnreadAnswers::Add          into the frame that leaves next: a reference to the version
// A contribution that is not the last of its clock waits after step 11. A unary call enters at
// ParameterService::Contribute, which does steps 2 to 6 for its one request.
//
// Not counted is what a step only asks: the core's own rules, an update's weights, the arithmetic,
// where memory lies. Not passed here is what other exchanges need: compressed weights
// (ReplyEncoder, in 12), a replica (HoldBack in 10, Replicate in 11), a full server and a stream's
// first request (both in 5).
//
// Values that are not finite come to light in step 13: a NaN or infinity makes the next version so,
// and the update says it (common/update/apply.h), without a pass of its own. That version is
// dropped; Reject searches the contributions for those to blame, has their workers told and the
// others' contributions kept. If all are finite, the update itself overflows: no single one is
// to blame, and each is refused, because the same set would overflow again.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/shm/shared_memory.h"
#include "common/update/clock_batches.h"
#include "common/update/schedule.h"
#include "common/wire/payload.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"
#include "leeway/v1/parameter_server.pb.h"
#include "server/core/block_core.h"
#include "server/core/replica_gate.h"
#include "server/shard/admission.h"
#include "server/shard/block_reading.h"
#include "server/shard/request_check.h"
#include "server/store/block_store.h"
#include "server/store/reply_encoder.h"

namespace leeway {

// One block held for a cut.
struct HeldBlock {
  uint32_t block = 0;
  BlockValues values;
  BlockProgress progress;
  // For a replica that is new, in sync mode: what the workers had of the version before.
  SharedFloats previous = {};
};

// Takes what the blocks hold for cuts. Called without locks, from any thread.
class CutListener {
 public:
  virtual ~CutListener() = default;
  virtual void OnHeld(uint64_t cut, HeldBlock block) = 0;
};

// Sync mode with committed sets: hears whose contributions the blocks hold. Called without locks,
// from any thread.
class ContributionListener {
 public:
  virtual ~ContributionListener() = default;
  // A block has this version to begin with.
  virtual void OnLoaded(uint64_t version) = 0;
  // A block has accepted a contribution.
  virtual void OnAccepted(uint32_t rank, uint64_t clock) = 0;
  // A block has refused what it had accepted, for its values.
  virtual void OnRefused(uint32_t rank, uint64_t clock) = 0;
  virtual void OnLive(uint32_t rank, bool live) = 0;
  virtual void OnCommitted(uint64_t clock) = 0;
};

// Takes blocks to where their replica is.
class ReplicaSink {
 public:
  using Done = std::function<void(const absl::Status&)>;
  virtual ~ReplicaSink() = default;
  // `done`: the replica has the block as it is here, or not; called once, from any thread, without
  // locks, possibly from within.
  virtual void Send(HeldBlock block, Done done) = 0;
};

// Has sent a request and waits on, however long the answer takes: it is told what is missing, again
// and again, in place of being refused.
class WaitingSender {
 public:
  virtual ~WaitingSender() = default;
  // Nobody is there any more to be answered. Called with a block's lock: takes none of its own.
  virtual bool gone() const = 0;
  // `id`: as the request names itself (Patience). Called without locks, from any thread.
  virtual void OnMissing(uint64_t id, const std::string& missing) = 0;
};

// How a request waits. Without a sender it is refused after Shard::kWaitAtMost.
struct Patience {
  std::shared_ptr<WaitingSender> sender;
  uint64_t id = 0;
  bool stays() const { return sender != nullptr && !sender->gone(); }
};

class Shard : public std::enable_shared_from_this<Shard> {
 public:
  using Done = std::function<void(absl::StatusOr<BlockReading>)>;
  // Calls `run` for 0 to `parts` - 1, in any order or side by side, and returns when all have run.
  using Share = std::function<void(uint64_t parts, const std::function<void(uint64_t)>& run)>;
  static void InTurn(uint64_t parts, const std::function<void(uint64_t)>& run);

  // Whoever waits is told so after this long, with what is missing, and sends the same again or
  // waits on (Patience): nobody waits in silence.
  static constexpr Duration kWaitAtMost = std::chrono::seconds(2);

  struct Options {
    v1::TrainingJob job;
    v1::ModelSchema schema;
    v1::JobLength length;
    uint64_t block_elements = 0;
    uint32_t server = 0;
    // Clocks between cuts; 0: none.
    uint64_t cut_every = 0;
    // Where versions lie, so that workers on this host can read them in place; null: on the heap.
    std::shared_ptr<SharedArena> memory;
    // Not null: sync mode with committed sets (CommitSet), and who is to hear what is held.
    std::shared_ptr<ContributionListener> contributions;
  };

  // INVALID_ARGUMENT if the options do not fit each other. `cuts` outlives the shard.
  static absl::StatusOr<std::unique_ptr<Shard>> Make(const Options& options, CutListener* cuts);

  // The optimizer state that the job's servers keep beside the weights.
  static absl::StatusOr<std::vector<std::string>> SlotNames(const v1::TrainingJob& job);

  // The data plane, thread-safe. `done` is called once: at once, or when what was waited for has
  // happened or is given up (Tick), from any thread, without locks. `now` is when the request came.
  absl::StatusOr<v1::AttachReply> Attach(uint32_t rank, uint64_t incarnation);
  // Payloads are what came, in the header's encoding. A contribution that wants no reply is
  // answered when it is applied, and the replica has that.
  void Initialize(const v1::ExchangeHeader& header, const FloatPayload& payload, Done done);
  void Contribute(const v1::ExchangeHeader& header, FloatPayload payload, bool wants_reply,
                  Time now, Done done, Patience patience = {});
  void Read(const v1::ExchangeHeader& header, ReadKind kind, Time now, Done done,
            Patience patience = {});

  // OK: the contribution must be let in however much the server holds (server/shard/admission.h);
  // that of another server's block, too, so that it is refused for what it is. Else
  // RESOURCE_EXHAUSTED, with a retry hint.
  absl::Status AdmitBeyondBudget(const v1::ExchangeHeader& header);

  // Answers UNAVAILABLE, naming who is missing, to those who have waited since before `since`, or
  // tells them so.
  void Tick(Time since);
  void SetLive(uint32_t rank, bool live);
  // What CommitSet would refuse: asked of all shards of a server before one of them commits.
  absl::Status CheckSet(uint64_t clock, const std::vector<uint32_t>& ranks) const;
  // With committed sets: the clock is made of the contributions of these ranks, rising, on every
  // block. Runs the updates, by `share`. INVALID_ARGUMENT for what can be no set; harmless when
  // repeated.
  absl::Status CommitSet(uint64_t clock, const std::vector<uint32_t>& ranks,
                         const Share& share = InTurn);
  // The server ends: nobody waits any more. Waits are answered UNAVAILABLE, those of now and later.
  void Close();

  // The control plane: loading (before any contribution), and every block as it stands for the cut
  // at `clock`. Hold is UNAVAILABLE while a block has no values or is being updated. In sync mode
  // all blocks must be at that very clock: a set that was torn by a death is no checkpoint
  // (FAILED_PRECONDITION).
  void Load(uint32_t block, BlockValues values, BlockProgress progress, SharedFloats previous = {});
  absl::StatusOr<std::vector<HeldBlock>> Hold(uint64_t clock) const;

  // From now on every version goes to the replica, and once it has had its first state of a block
  // no answer of that block leaves before the replica has what it says
  // (server/core/replica_gate.h). Null: there is none. The shard is held by a shared_ptr.
  void SetReplica(std::shared_ptr<ReplicaSink> replica);
  // The replica has all that has left.
  bool replica_synced() const;

  const std::shared_ptr<SharedArena>& memory() const { return memory_; }
  BlockStore& store() { return store_; }
  const BlockStore& store() const { return store_; }
  // Closed: another has taken its place, or the server ends.
  bool closed() const { return closed_; }
  bool IsRank(uint32_t rank) const { return rank < workers_; }
  // Requests that wait for an update.
  uint64_t waiting() const;
  uint64_t updates_applied() const { return updates_applied_.load(std::memory_order_relaxed); }

 private:
  // In the units of a block's time.
  static constexpr uint64_t kWaitTicks = static_cast<uint64_t>(kWaitAtMost.count());

  struct Reader {
    Done done;
    ReaderOptions options;
    Patience patience;
    // And not only to hear that what it brought is applied.
    bool wants_values = false;
    // Elastic: the state before the contribution that the reader brought.
    SharedFloats before = {};
    SentVersion sent_before = {};
  };
  struct Leaving {
    Done done;
    absl::StatusOr<BlockReading> result;
    Patience patience = {};
  };
  using Answers = std::vector<Leaving>;
  // Answers that were given when the block was at `version`.
  struct Gated {
    uint64_t version = 0;
    // The first Tick that saw them; or that told those who wait on.
    std::optional<uint64_t> seen;
    Answers answers;
  };
  struct Slot {
    Slot(uint32_t number, const ConsistencyRules& rules) : block(number), core(number, rules) {}
    const uint32_t block;
    mutable Mutex mutex;
    BlockCore core GUARDED_BY(mutex);
    std::map<RequestId, Contribution> contributions GUARDED_BY(mutex);
    std::map<RequestId, Reader> readers GUARDED_BY(mutex);
    // The current version as it is answered, and in sync mode the one before.
    SentVersion sent GUARDED_BY(mutex);
    SentVersion previously_sent GUARDED_BY(mutex);
    // Where versions go, and what may leave meanwhile.
    std::shared_ptr<ReplicaSink> replica GUARDED_BY(mutex);
    ReplicaGate gate GUARDED_BY(mutex);
    // By rank: contributions applied to what the replica has, or had left before it had anything;
    // empty until then.
    std::vector<uint64_t> replicated GUARDED_BY(mutex);
    std::deque<Gated> gated GUARDED_BY(mutex);
  };
  // An update that the core has begun; runs without the lock.
  struct Running {
    // By the core's names, and what they are.
    RequestIds requests;
    std::vector<Contribution> contributions;
    UpdateStep step;
    // The next version is read as soon as it is there.
    bool awaited = true;
    // Of a compressed block: the version before.
    SentVersion sent_before;
  };
  // What is left to do once the lock is free.
  struct Outbox {
    Answers answers;
    // To those who wait on, what for.
    std::vector<std::pair<Patience, std::string>> reminders;
    std::optional<Running> update;
    std::optional<std::pair<uint64_t, HeldBlock>> held;
  };

  Shard(const Options& options, const BlockLayout& layout, std::unique_ptr<UpdateRule> rule,
        std::shared_ptr<const CodecPlan> codecs, CutListener* cuts);

  uint32_t IndexOf(uint32_t block) const { return block / store_.layout().servers(); }
  Slot& SlotOf(uint32_t block) { return *slots_[IndexOf(block)]; }
  Outbox Act(Slot& slot, Decisions decisions) REQUIRES(slot.mutex);
  // What who asks once it is closed is told.
  static absl::Status NotServed(const Slot& slot);
  static Outbox Refuse(const Slot& slot, Done done);
  BlockReading ReadingOf(const Slot& slot, const Answer& answer, const Reader& reader) const
      REQUIRES(slot.mutex);
  BlockValues ValuesOf(const Slot& slot) const REQUIRES(slot.mutex);
  // Elastic: the state that the update's contribution finds, for who brought it.
  void KeepBefore(Slot& slot, const Update& update) REQUIRES(slot.mutex);
  bool Awaits(const Slot& slot) const REQUIRES(slot.mutex);
  // What the schedule takes for time: the contribution's clock, or where the job's length counts
  // for all workers together the mean clock, so that fast and slow workers are at the same point of
  // it.
  UpdateStep StepOf(const Slot& slot, const Update& update) const REQUIRES(slot.mutex);
  // Of those that are not part of another one.
  ContributionWeights Weights(const std::vector<Contribution>& contributions) const;
  // How many batches are behind it.
  double BatchesOf(const Contribution& contribution) const;
  // Keeps back what the replica does not yet have, where the gate is shut.
  void HoldBack(Slot& slot, Answers& answers) REQUIRES(slot.mutex);
  // What may leave now.
  Answers TakeOpen(Slot& slot) REQUIRES(slot.mutex);
  // Refuses those that have been kept back since before `since`, or all; but who waits on is
  // reminded.
  void GiveUpGated(Slot& slot, uint64_t since, Outbox& outbox) REQUIRES(slot.mutex);
  // What the workers had of the version before.
  SharedFloats PreviousOf(const Slot& slot) const REQUIRES(slot.mutex);
  // Sends the newest version if there is a replica and it is its turn.
  void Replicate(Slot& slot);
  void OnReplicated(Slot& slot, const ReplicaSink* replica, std::vector<uint64_t> clocks,
                    const absl::Status& status);
  // Delivers, and runs updates until none is begun.
  void Finish(Slot& slot, Outbox outbox);
  // Makes the next version, and has the core say who is answered by it.
  Outbox Run(Slot& slot, Running running);
  // Ends an update without a next version: some of its contributions are refused, and the others
  // wait again.
  Outbox Reject(Slot& slot, Running running, const std::vector<Refusal>& refusals);
  // The same where values are not finite: in contributions, or in `write`, the update's result.
  Outbox RejectNotFinite(Slot& slot, Running running, const BlockWrite& write);
  // The same where the contributions do not go together: all are refused.
  Outbox RejectAll(Slot& slot, Running running, const absl::Status& why);
  std::vector<Refusal> NotFinite(const Slot& slot, const Running& running) const;
  void TellRefused(const Running& running, const std::vector<Refusal>& refusals) const;

  const bool sync_;
  const bool elastic_;
  // A contribution may be the sum of several workers'.
  const bool combines_;
  // Contributions that have any examples weigh the same.
  const bool equal_weights_;
  const uint32_t workers_;
  const bool ends_by_sum_;
  const ClockBatches batches_;
  // Examples behind a contribution of ordinary size, which weighs 1 when applied alone.
  const double nominal_examples_;
  // Nothing for an elastic exchange, which has no learning rate.
  const std::optional<Schedule> schedule_;
  CutListener* const cuts_;
  const std::shared_ptr<SharedArena> memory_;
  // Null: a sync clock needs everybody's.
  const std::shared_ptr<ContributionListener> contributions_;
  BlockStore store_;
  const ReplyEncoder encoder_;
  const RequestCheck check_;
  std::vector<std::unique_ptr<Slot>> slots_;
  Admission admission_;
  std::atomic<RequestId> next_request_{1};
  std::atomic<uint64_t> updates_applied_{0};
  std::atomic<bool> closed_{false};
  std::atomic<bool> replicates_{false};
};

}  // namespace leeway
