// In a training job workers compute, and servers hold the model. A shard is one server's share of
// the model: a set of blocks. A block is a fixed range of the model's parameters. For each of its
// blocks the shard has
// - a BlockCore (server/core), which decides what happens to a request: whether it is accepted,
//   refused, answered or kept waiting, and when the block is updated;
// - the block's values in the BlockStore (server/store), as versions that never change;
// - a lock of its own. Two blocks share no lock.
//
// In one exchange a worker sends a contribution, such as a gradient, for every block, and gets the
// next version of every block. The worker's clock counts its exchanges. In sync mode the next
// version needs the contributions of all workers for the same clock. The shard keeps each
// contribution as it arrives, and the last one starts the update.
//
// The walk follows this last contribution of a clock for one block. Its worker has sent it on a
// stream, as a PushPull request, which asks for the next version in return
// (client/calls/parameter_client.h has the worker's walk). One thread makes all fifteen calls.
// Nothing copies the values: the update reads them where the network left them.
//
//   The request comes in.
//    1. StreamSession::OnRead       gets a frame from the network, with one or more requests.
//    2. DecodeRequestFrame          parses the requests' headers. Their values (payloads) stay in
//                                   the received memory.
//    3. ByteBudget::Hold            counts that memory until its last payload is released.
//    4. StreamSession::Ask          takes one request after the other.
//    5. ShardTable::Admit           finds the block's shard, and checks the sender and the memory
//                                   budget.
//    6. FramePayload::Take          finds the request's payload in the frame.
//
//   The shard decides.
//    7. Shard::Contribute           calls 8, takes the block's lock, calls 9 and 10 under it, and
//                                   then 11.
//    8. RequestCheck::OpenContribution
//                                   checks block, rank, and number of values.
//    9. BlockCore::OnContribution   accepts the contribution and, because the clock's set is now
//                                   complete, decides to update the block. In other cases it finds
//                                   a duplicate, refuses, or lets the request wait.
//   10. Shard::Act                  prepares what was decided: the contributions for the update,
//                                   and the answers that may leave now.
//   11. Shard::Finish               runs without the lock. It sends those answers (14) and calls
//                                   12 for the update.
//
//   The update makes the next version.
//   12. Shard::Run                  computes the weight of each contribution, gets memory for the
//                                   next version, and calls 13.
//   13. BlockStore::Run             adds up the contributions in rank order and applies the update
//                                   rule, from the received memory into the next version.
//       Then Shard::Run takes the lock. BlockStore::Commit makes the next version the current one,
//       and BlockCore::OnApplied decides which waiting requests it answers. Steps 10 and 11 run
//       once more, with these answers.
//
//   The answers go out.
//   14. StreamSession::Answer       runs as the callback (`done`) of each answered request, here of
//                                   one request from each worker.
//   15. UnreadAnswers::Add          puts a reference to the version into the worker's next frame.
//
// Other cases:
// - A contribution that is not the last of its clock waits in the shard after step 11.
// - A unary call enters at ParameterService::Contribute, which does steps 2 to 6 for its one
//   request.
// - Some requests need more, which the walk leaves out: compressed weights (ReplyEncoder, in 12),
//   a replica of the block on another server (HoldBack in 10, Replicate in 11), a server whose
//   memory budget is used up, and the first request of a stream (both in 5).
// - The walk also leaves out the functions that a step calls for its decisions and arithmetic: the
//   core's rules, the weights of an update, the update rule itself, the choice of memory.
// - Step 13 also finds values that are not finite. A NaN or infinity in a contribution makes the
//   next version not finite, and the update notices this without a pass of its own
//   (common/update/apply.h). The shard drops that version. RejectNotFinite searches the
//   contributions, refuses those that are not finite, and keeps the others. If all contributions
//   are finite, the update itself overflows, and no single contribution is the cause. All
//   contributions are then refused, because the same set would overflow again.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/shm/shared_memory.h"
#include "common/wire/payload.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"
#include "leeway/v1/parameter_server.pb.h"
#include "server/core/block_core.h"
#include "server/core/replica_gate.h"
#include "server/shard/admission.h"
#include "server/shard/block_reading.h"
#include "server/shard/request_check.h"
#include "server/shard/update_scale.h"
#include "server/store/block_store.h"
#include "server/store/reply_encoder.h"

namespace leeway {

// The state of one block that is kept for a cut or sent to a replica.
struct HeldBlock {
  uint32_t block = 0;
  BlockValues values;
  BlockProgress progress;
  // Only for a new replica in sync mode: the previous version as the workers received it.
  SharedFloats previous = {};
};

// Receives the blocks of a cut. Called without locks, from any thread.
class CutListener {
 public:
  virtual ~CutListener() = default;
  virtual void OnHeld(uint64_t cut, HeldBlock block) = 0;
};

// Hears which contributions the blocks hold, in sync mode with committed sets. Called without
// locks, from any thread.
class ContributionListener {
 public:
  virtual ~ContributionListener() = default;
  // Called when a block begins with this version.
  virtual void OnLoaded(uint64_t version) = 0;
  // Called when a block has accepted a contribution.
  virtual void OnAccepted(uint32_t rank, uint64_t clock) = 0;
  // Called when a block refuses, because of its values, a contribution that it had accepted.
  virtual void OnRefused(uint32_t rank, uint64_t clock) = 0;
  virtual void OnLive(uint32_t rank, bool live) = 0;
  virtual void OnCommitted(uint64_t clock) = 0;
};

// Sends blocks to the server that keeps their replica.
class ReplicaSink {
 public:
  using Done = std::function<void(const absl::Status&)>;
  virtual ~ReplicaSink() = default;
  // Sends a block in its state. `done` is called once, with OK if the replica has the block in this
  // state, and otherwise with the error. `done` may be called from any thread, without locks, also
  // before Send returns.
  virtual void Send(HeldBlock block, Done done) = 0;
};

// The sender of a request that waits for its answer without a limit. Instead of refusing the
// request, the shard repeatedly reports what is missing.
class WaitingSender {
 public:
  virtual ~WaitingSender() = default;
  // Returns true if the sender can no longer be answered. Called under a block's lock, so
  // implementations must not lock anything.
  virtual bool gone() const = 0;
  // Reports what the request waits for. `id` is the sender's number of the request (Patience).
  // Called without locks, from any thread.
  virtual void OnMissing(uint64_t id, const std::string& missing) = 0;
};

// How a request waits. If `sender` is null, the request is refused after Shard::kWaitAtMost.
struct Patience {
  std::shared_ptr<WaitingSender> sender;
  uint64_t id = 0;
  bool stays() const { return sender != nullptr && !sender->gone(); }
};

class Shard : public std::enable_shared_from_this<Shard> {
 public:
  using Done = std::function<void(absl::StatusOr<BlockReading>)>;
  // Calls `run` for 0 to `parts` - 1, in any order or in parallel, and returns when all calls have
  // returned.
  using Share = std::function<void(uint64_t parts, const std::function<void(uint64_t)>& run)>;
  static void InTurn(uint64_t parts, const std::function<void(uint64_t)>& run);

  // After this time the shard reports to the sender of a waiting request what is missing. The
  // sender then repeats the request or continues to wait (Patience). So no sender waits without
  // news.
  static constexpr Duration kWaitAtMost = std::chrono::seconds(2);

  struct Options {
    v1::TrainingJob job;
    v1::ModelSchema schema;
    v1::JobLength length;
    uint64_t block_elements = 0;
    uint32_t server = 0;
    // The number of clocks between two cuts, or 0 if no cuts are made.
    uint64_t cut_every = 0;
    // The memory for versions, from which workers on this host can read. If null, the heap is used.
    std::shared_ptr<SharedArena> memory;
    // In sync mode with committed sets (CommitSet): the listener for the contributions that blocks
    // hold. Otherwise null.
    std::shared_ptr<ContributionListener> contributions;
  };

  // Returns INVALID_ARGUMENT if the options do not fit each other. `cuts` must outlive the shard.
  static absl::StatusOr<std::unique_ptr<Shard>> Make(const Options& options, CutListener* cuts);

  // Returns the names of the optimizer slots that the job's servers keep beside the weights.
  static absl::StatusOr<std::vector<std::string>> SlotNames(const v1::TrainingJob& job);

  // The data plane. These methods are thread-safe. `done` is called once: immediately, when the
  // event that the request waits for has happened, or when Tick refuses the request. `done` is
  // called from any thread, without locks. `now` is the time at which the request arrived.
  absl::StatusOr<v1::AttachReply> Attach(uint32_t rank, uint64_t incarnation);
  // `payload` contains the received values in the header's encoding. A contribution that wants no
  // reply is answered when it has been applied and the replica, if there is one, has the result.
  void Initialize(const v1::ExchangeHeader& header, const FloatPayload& payload, Done done);
  void Contribute(const v1::ExchangeHeader& header, FloatPayload payload, bool wants_reply,
                  Time now, Done done, Patience patience = {});
  void Read(const v1::ExchangeHeader& header, ReadKind kind, Time now, Done done,
            Patience patience = {});

  // Returns OK if the contribution must be admitted although the server's memory budget is used up
  // (server/shard/admission.h), and otherwise RESOURCE_EXHAUSTED with a retry hint. Also returns OK
  // for a block that is not here, so that a later check refuses the request with the right error.
  absl::Status AdmitBeyondBudget(const v1::ExchangeHeader& header);

  // Handles the requests that began to wait before `since`. If a request has a waiting sender
  // (Patience), informs the sender, and the request continues to wait. Answers each other request
  // with UNAVAILABLE, naming the missing workers.
  void Tick(Time since);
  void SetLive(uint32_t rank, bool live);
  // Returns the error that CommitSet would return. Call this for all shards of a server before any
  // of them commits.
  absl::Status CheckSet(uint64_t clock, const std::vector<uint32_t>& ranks) const;
  // With committed sets only: makes `ranks` (in rising order) the clock's set, for every block.
  // `share` runs the updates. Returns INVALID_ARGUMENT for an impossible set. May be repeated.
  absl::Status CommitSet(uint64_t clock, const std::vector<uint32_t>& ranks,
                         const Share& share = InTurn);
  // Ends the shard. All waiting requests and all later requests are answered with UNAVAILABLE.
  void Close();

  // The control plane. Load sets a block's values, before any contribution. Hold returns every
  // block in its present state, for the cut at `clock`. Hold returns UNAVAILABLE while a block has
  // no values or is being updated. In sync mode all blocks must be at exactly that clock. If they
  // are not, because a worker has died in the middle of an exchange, Hold returns
  // FAILED_PRECONDITION.
  void Load(uint32_t block, BlockValues values, BlockProgress progress, SharedFloats previous = {});
  absl::StatusOr<std::vector<HeldBlock>> Hold(uint64_t clock) const;

  // Sends every version to the replica from now on, or to no replica if `replica` is null. Once the
  // replica has the first state of a block, no answer for that block leaves before the replica has
  // the state that the answer shows (server/core/replica_gate.h). The shard must be owned by a
  // shared_ptr.
  void SetReplica(std::shared_ptr<ReplicaSink> replica);
  // Returns true if the replica has every state that an answer has shown.
  bool replica_synced() const;

  const std::shared_ptr<SharedArena>& memory() const { return memory_; }
  BlockStore& store() { return store_; }
  const BlockStore& store() const { return store_; }
  // Returns true if another shard has replaced this one, or the server ends.
  bool closed() const { return closed_; }
  bool IsRank(uint32_t rank) const { return rank < scale_.workers(); }
  // The number of requests that wait for an update.
  uint64_t waiting() const;
  uint64_t updates_applied() const { return updates_applied_.load(std::memory_order_relaxed); }

 private:
  // kWaitAtMost in the unit of time that the cores use.
  static constexpr uint64_t kWaitTicks = static_cast<uint64_t>(kWaitAtMost.count());

  struct Reader {
    Done done;
    ReaderOptions options;
    Patience patience;
    // True if the request wants values. If false, the request only waits until its contribution has
    // been applied.
    bool wants_values = false;
    // For an elastic exchange: the state before the reader's own contribution, and the same state
    // as it was sent.
    SharedFloats before = {};
    SentVersion sent_before = {};
  };
  struct Leaving {
    Done done;
    absl::StatusOr<BlockReading> result;
    Patience patience = {};
  };
  using Answers = std::vector<Leaving>;
  // Answers that wait for the replica. They were decided when the block was at `version`.
  struct Gated {
    uint64_t version = 0;
    // When a Tick first saw these answers, or last informed their waiting senders.
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
    // The current version as it is sent to workers; in sync mode, the previous version, too.
    SentVersion sent GUARDED_BY(mutex);
    SentVersion previously_sent GUARDED_BY(mutex);
    // The sink to which versions are sent, or null.
    std::shared_ptr<ReplicaSink> replica GUARDED_BY(mutex);
    // Decides which answers may leave.
    ReplicaGate gate GUARDED_BY(mutex);
    // By rank: the number of contributions that the replica's state includes or that were answered
    // before the replica had any state. Empty until the replica has a state.
    std::vector<uint64_t> replicated GUARDED_BY(mutex);
    std::deque<Gated> gated GUARDED_BY(mutex);
  };
  // An update that the core has begun. It runs without the lock.
  struct Running {
    // The contributions, and their numbers in the core.
    RequestIds requests;
    std::vector<Contribution> contributions;
    UpdateStep step;
    // True if a reader waits for the next version.
    bool awaited = true;
    // For a compressed block: the previous version as it was sent to workers.
    SentVersion sent_before;
  };
  // The work that remains to be done without the lock.
  struct Outbox {
    Answers answers;
    // The senders whose requests continue to wait, and what these requests wait for.
    std::vector<std::pair<Patience, std::string>> reminders;
    std::optional<Running> update;
    std::optional<std::pair<uint64_t, HeldBlock>> held;
  };

  Shard(const Options& options, const BlockLayout& layout, std::unique_ptr<UpdateRule> rule,
        std::shared_ptr<const CodecPlan> codecs, CutListener* cuts);

  uint32_t IndexOf(uint32_t block) const { return block / store_.layout().shards(); }
  Slot& SlotOf(uint32_t block) { return *slots_[IndexOf(block)]; }
  Outbox Act(Slot& slot, Decisions decisions) REQUIRES(slot.mutex);
  // Returns what a request waits for that needs a version which the replica does not have yet.
  static std::string WaitsForReplica(const Slot& slot, uint64_t version);
  // Returns the answer to a request that comes after Close().
  static absl::Status NotServed(const Slot& slot);
  static Outbox Refuse(const Slot& slot, Done done);
  BlockReading ReadingOf(const Slot& slot, const Answer& answer, const Reader& reader) const
      REQUIRES(slot.mutex);
  BlockValues ValuesOf(const Slot& slot) const REQUIRES(slot.mutex);
  // For an elastic exchange: keeps the state before the update's contribution, for the answer to
  // that contribution.
  void KeepBefore(Slot& slot, const Update& update) REQUIRES(slot.mutex);
  bool Awaits(const Slot& slot) const REQUIRES(slot.mutex);
  // If the gate is closed, keeps back the answers that show more than the replica's state.
  void HoldBack(Slot& slot, Answers& answers) REQUIRES(slot.mutex);
  // Returns the answers that may leave now.
  Answers TakeOpen(Slot& slot) REQUIRES(slot.mutex);
  // Refuses the requests whose answers were first kept back before `since`; after Close(), all
  // requests whose answers are kept back. Informs a waiting sender (Patience) instead.
  void GiveUpGated(Slot& slot, uint64_t since, Outbox& outbox) REQUIRES(slot.mutex);
  // Returns the previous version as the workers received it.
  SharedFloats PreviousOf(const Slot& slot) const REQUIRES(slot.mutex);
  // Sends the newest version if there is a replica and no older state is in flight.
  void Replicate(Slot& slot);
  void OnReplicated(Slot& slot, const ReplicaSink* replica, std::vector<uint64_t> clocks,
                    const absl::Status& status);
  // Delivers everything in `outbox`, and runs updates until no other one begins.
  void Finish(Slot& slot, Outbox outbox);
  // Makes the next version. The core then decides which requests are answered.
  Outbox Run(Slot& slot, Running running);
  // Ends an update without a next version. Refuses the contributions in `refusals`. The others wait
  // for another update.
  Outbox Reject(Slot& slot, Running running, const std::vector<Refusal>& refusals);
  // Does the same for values that are not finite, in contributions or in `write`, the result of the
  // update.
  Outbox RejectNotFinite(Slot& slot, Running running, const BlockWrite& write);
  // Does the same for contributions that do not fit together. Refuses all of them with `why`.
  Outbox RejectAll(Slot& slot, Running running, const absl::Status& why);
  std::vector<Refusal> NotFinite(const Slot& slot, const Running& running) const;
  void TellRefused(const Running& running, const std::vector<Refusal>& refusals) const;

  const UpdateScale scale_;
  CutListener* const cuts_;
  const std::shared_ptr<SharedArena> memory_;
  // The listener for held contributions. If null, a clock in sync mode needs the contributions of
  // all workers.
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
