// What may happen to one block, and when: the consistency modes as a pure state machine. No
// threads, clocks, RNG, I/O, gRPC or floats: inputs in, decisions out, so that every schedule can
// be tested.
//
// The rules (docs/consistency.md):
// - A contribution is named (rank, clock) and accepted once; repeating it is harmless. A rank hands
//   in its clocks one after the other. An incarnation older than the newest known one of its rank
// is
//   refused.
// - sync: clock c is applied in one piece, in rank order, when every rank has handed it in. A
// reader
//   that starts clock c gets exactly version c. Version c - 1 stays readable until c + 1 is made,
// for
//   a worker that died in between and repeats clock c - 1.
// - sync with committed sets: the driver says which contributions make clock c (OnCommitted), the
//   same set for every block of the job. Nothing else is ever applied. A contribution outside the
//   set, held or coming later, is dropped and its sender is told (ALREADY_EXISTS). So is a reader
//   that wants a version which is no longer kept. Its rank continues at the clock that OnAttach
// says.
// - bounded: applied on arrival. A reader that starts clock c waits until every live rank's
//   contributions of clocks < c - s, and its own of clocks < c, are applied. async: its own only.
// - A sender that only hands in a contribution is answered when it is applied, in every mode. So
//   whatever was answered is in the block's version, and goes where that goes.
// - One update of the block runs at a time, in the order of acceptance. Readers need not wait for
//   it, because the current version stays until the update is done.
// - A contribution whose update cannot be made (it is not finite) counts as never received, and its
//   sender is told. The other contributions of its set wait until the sender hands it in again.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"

namespace leeway {

enum class Consistency { kSync, kBounded, kAsync };

struct ConsistencyRules {
  Consistency mode = Consistency::kSync;
  // Clocks; bounded only.
  uint64_t staleness = 0;
  uint32_t workers = 1;
  // The answer to a contribution is the block as it was before (elastic exchange).
  bool elastic = false;
  // Clocks between cuts; 0: none.
  uint64_t cut_every = 0;
  // Sync: not all contributions make a clock's update, but those that the caller says
  // (OnCommitted).
  bool committed_sets = false;
};

// The sender of a message, and its clock.
struct Sender {
  uint32_t rank = 0;
  uint64_t incarnation = 0;
  uint64_t clock = 0;
};

// The driver's name for a request that waits for an answer.
using RequestId = uint64_t;
// Outside of lockstep mostly one.
using RequestIds = absl::InlinedVector<RequestId, 1>;

// Which state of the block answers a reader.
enum class Readable { kCurrent, kPrevious };

struct Answer {
  RequestId request = 0;
  Readable which = Readable::kCurrent;
  // Clocks by which the slowest live rank is behind the reader's next clock.
  uint64_t staleness = 0;
  bool duplicate = false;
};

struct Refusal {
  RequestId request = 0;
  absl::Status status;
};

// An update to run, then to report by OnApplied or OnRejected: these contributions, so ordered, as
// one aggregate.
struct Update {
  uint64_t clock = 0;
  RequestIds contributions;
};

// What the driver must do, in this order: take the cut, answer, begin the update.
struct Decisions {
  // Hold the block as it is for the cut at this clock.
  std::optional<uint64_t> cut;
  absl::InlinedVector<Answer, 1> answers;
  std::vector<Refusal> refusals;
  // Which senders keep waiting, and what for.
  std::vector<Refusal> reminders;
  std::optional<Update> update;
  // Keep the contribution of the request just passed in until its update; else drop it.
  bool accepted = false;
  // Contributions kept until now that will be in no update.
  RequestIds dropped;
};

// Where a block stands: what a checkpoint holds beside its values.
struct BlockProgress {
  // Updates applied, as cuts, schedules and the job's end count them: of a job that was resumed
  // with other workers or in another mode as many as those would have made until then.
  uint64_t version = 0;
  // By rank: contributions applied, which is the next clock wanted.
  std::vector<uint64_t> clocks;
  // By rank, with committed sets, where everybody's clock is the version: the clock after the last
  // contribution of the rank that is applied. Not in a checkpoint.
  std::vector<uint64_t> counted = {};
  // Updates applied, as the optimizer state has seen them.
  uint64_t updates = 0;
};

// Not thread-safe. Time is the caller's, in any unit, never running backwards.
class BlockCore {
 public:
  // `block` is for messages.
  BlockCore(uint32_t block, const ConsistencyRules& rules);

  // The block has its first version, or that of a checkpoint. Once; before it everything but
  // OnSetLive and OnAttach is answered UNAVAILABLE.
  // `has_previous`: the version before it is readable, too (sync).
  Decisions OnInitialized(BlockProgress progress, bool has_previous = false);

  // A rank's new life begins, or its old one was overtaken. Returns the clock at which it
  // continues, or ABORTED if a newer life exists. It hands in again what is held of it and not
  // applied yet, because a server that takes over this block knows nothing of that.
  absl::StatusOr<uint64_t> OnAttach(uint32_t rank, uint64_t incarnation);
  // `wants_reply`: the request is also a reader that starts sender.clock + 1; else it is answered
  // when the contribution is applied, and waits for nothing else.
  Decisions OnContribution(const Sender& sender, RequestId request, bool wants_reply, uint64_t now);
  // Committed sets: clock `clock` is made of the contributions of exactly these ranks, rising. Once
  // a clock; what is repeated or of an older clock is ignored.
  Decisions OnCommitted(uint64_t clock, const std::vector<uint32_t>& ranks);
  // A reader that starts sender.clock.
  Decisions OnRead(const Sender& sender, RequestId request, uint64_t now);
  // A reader that takes what is there (no worker).
  Decisions OnReadLatest(RequestId request, uint64_t now);
  // The update last decided is done.
  Decisions OnApplied();
  // The update last decided cannot be made, because of these of its contributions, at least one.
  // They are forgotten, and with them what their ranks have handed in since. Readers that wait for
  // those are refused. The caller keeps the update's other contributions until another update.
  Decisions OnRejected(const std::vector<Refusal>& contributions);
  // Sets whether a rank holds up the others. In sync mode every rank does, until it comes back.
  // With committed sets the one who commits them decides.
  Decisions OnSetLive(uint32_t rank, bool live);
  // Refuses with UNAVAILABLE those who have waited since before `since`, and names who is missing.
  Decisions OnTick(uint64_t since) { return OnTick(since, since, nullptr); }
  // The same, except for those that `stay`: they are reminded, and wait on as if they had come
  // `now`, unless their contribution must be handed in again.
  Decisions OnTick(uint64_t since, uint64_t now, const std::function<bool(RequestId)>& stays);

  bool initialized() const { return initialized_; }
  bool has_waiters() const { return !waiters_.empty() || !held_up_.empty(); }
  const BlockProgress& progress() const { return progress_; }
  // Ranks that are not lost and have not left.
  uint32_t live() const { return live_; }
  // The rank's contribution of the clock has been accepted, or given up, so that another is a
  // duplicate.
  bool has(uint32_t rank, uint64_t clock) const {
    return rank < ranks_.size() && ranks_[rank].next > clock;
  }
  // The clock after the rank's last contribution that is applied.
  uint64_t counted(uint32_t rank) const {
    return rules_.committed_sets ? progress_.counted[rank] : progress_.clocks[rank];
  }
  // No contribution is being applied or waits for its turn (in sync mode: for its set).
  bool idle() const {
    return running_.empty() && (pending_.empty() || rules_.mode == Consistency::kSync);
  }

 private:
  struct Rank {
    uint64_t incarnation = 0;
    // The first clock not accepted yet; with committed sets, nor given up.
    uint64_t next = 0;
    bool live = true;
  };
  struct Waiter {
    RequestId request = 0;
    // The clock that it starts; nothing: any state will do.
    std::optional<Sender> reader;
    // The contribution that it brought is to be answered with the state before.
    bool before = false;
    bool duplicate = false;
    uint64_t since = 0;
    // It has brought a contribution, of the clock before.
    bool contributes = false;
    // It wants the block, and not only to hear that what it has brought is applied.
    bool reads = true;
  };
  struct Pending {
    uint32_t rank = 0;
    uint64_t clock = 0;
    RequestId request = 0;
  };

  absl::Status CheckSender(const Sender& sender);
  absl::Status CheckClock(const Sender& sender) const;
  // Committed sets: the clock's set is known, and the sender's contribution is not in it.
  bool IsLate(const Sender& sender) const;
  // The set of the current clock, if it is known; and its members.
  const std::vector<uint32_t>* Set() const;
  bool InSet(uint32_t rank) const;
  absl::Status Overtaken(uint32_t rank, uint64_t wanted) const;
  // Puts a reader in the queue, and answers it if it need not wait.
  void AddReader(Waiter waiter, Decisions& decisions);
  // Nothing if it must wait. A status if it can never be answered.
  std::optional<Answer> TryRead(const Waiter& waiter) const;
  std::optional<Answer> TryReadSync(const Waiter& waiter) const;
  bool MayRead(const Waiter& waiter) const;
  // True if it does not wait for the contributions of others.
  bool WaitsForOwnOnly(const Waiter& waiter) const;
  absl::Status CheckReadable(const Waiter& waiter) const;
  // Sync: the reader wants the version before the current one.
  bool WantsPrevious(const Waiter& waiter) const;
  void ReleaseWaiters(Decisions& decisions);
  // Answers it, or refuses it if its life has been replaced; false: it must wait on.
  bool Release(const Waiter& waiter, Decisions& decisions);
  // Bounded: answers the readers for which the slowest rank has come far enough.
  void ReleaseHeldUp(Decisions& decisions);
  // Only the slowest rank keeps it from its answer.
  bool IsHeldUp(const Waiter& waiter) const;
  void BeginUpdate(Decisions& decisions);
  // Sync: all contributions of the current clock's update are here.
  bool IsComplete() const;
  // If the set is known, drops what is held of ranks outside it, and refuses those who wait for it.
  void DropOthers(Decisions& decisions);
  // Takes the rank back to `contribution`, which is of its update.
  void Forget(const Pending& contribution, const absl::Status& status, Decisions& decisions);
  void TakeCut(Decisions& decisions);
  // The clock for cuts: the version in sync mode, otherwise the mean clock. It rises steadily,
  // whoever is lost or slow.
  uint64_t CutClock() const;
  // Contributions of clocks below it have been applied from every live rank. Not in sync mode.
  uint64_t SlowestClock() const;
  // A live rank stands at `clock`, or no longer does, or goes on from there.
  void Stand(uint64_t clock, int change);
  void MoveOn(uint64_t from, uint64_t to);
  uint64_t StalenessOf(const Sender& reader) const;
  // What it has brought is here, or has been applied, and it is no older life's.
  bool Stands(const Waiter& waiter) const;
  // By the awaited clock, and whether it is awaited from others. Readers with the same key wait for
  // the same ranks.
  using Lateness = std::map<std::pair<std::optional<uint64_t>, bool>, absl::Status>;
  const absl::Status& WhyLate(const Waiter& waiter, Lateness& known) const;
  std::string Missing(const Waiter& waiter) const;
  std::string Name(uint32_t rank) const;

  const uint32_t block_;
  const ConsistencyRules rules_;
  bool initialized_ = false;
  // An update has been made since the first version, so there is one before the current.
  bool has_previous_ = false;
  BlockProgress progress_;
  std::vector<Rank> ranks_;
  uint32_t live_;
  // Accepted, not yet in an update, in the order of acceptance.
  std::deque<Pending> pending_;
  // In the update that runs.
  std::vector<Pending> running_;
  // By clock, from the current one on: the committed sets.
  std::map<uint64_t, std::vector<uint32_t>> sets_;
  // Wait for an update, mostly that of their own contribution.
  std::vector<Waiter> waiters_;
  // Bounded: readers that wait for others, by the clock that the slowest rank must reach. So an
  // update looks only at those that may continue, however many wait.
  std::map<uint64_t, std::vector<Waiter>> held_up_;
  // How many live ranks stand at each clock of progress_.clocks; empty in sync mode.
  std::map<uint64_t, uint32_t> standing_;
  uint64_t next_cut_ = 0;
};

}  // namespace leeway
