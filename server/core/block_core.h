// Decides what happens to the requests for one block, and when. BlockCore implements the
// consistency modes as a pure state machine, without threads, clocks, RNG, I/O, gRPC or floats. Its
// methods accept events and return decisions, so tests can run every order of events.
//
// The rules (docs/consistency.md):
// - The pair (rank, clock) identifies a contribution. A contribution is accepted once, and
//   repeating it does no harm. A rank must send its contributions in the order of their clocks. An
//   incarnation is refused if a newer incarnation of the same rank is known.
// - sync: clock c is applied as one update, in rank order, when the contributions of all ranks have
//   arrived. A reader that starts clock c gets exactly version c. Version c - 1 stays readable
//   until version c + 1 is made, because a worker that died may have to repeat clock c - 1.
// - sync with committed sets: the driver specifies which contributions make up clock c
//   (OnCommitted). The set is the same for every block of the job, and no other contribution is
//   ever applied at clock c. A contribution outside the set is dropped, whether it is already here
//   or arrives later, and its sender gets ALREADY_EXISTS. A reader that wants a version that is no
//   longer kept gets the same error. The rank then continues at the clock that OnAttach returns.
// - bounded: a contribution is applied on arrival. A reader that starts clock c waits until every
//   live rank's contributions of clocks < c - s are applied, and the reader's own contributions of
//   clocks < c.
// - async: as bounded, but a reader waits only for its own contributions.
// - In every mode, a sender that wants no values is answered when its contribution is applied. So
//   the block's version includes every answered contribution, and so does every copy of that
//   version.
// - One update of the block runs at a time, in the order of acceptance. Readers need not wait for
//   it, because the current version stays until the update is done.
// - A contribution with a value that is not finite prevents its update. The core then treats the
//   contribution as never received and refuses it. The other contributions of the set wait until
//   the sender sends the contribution again.
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
  // The staleness bound in clocks. Used in bounded mode only.
  uint64_t staleness = 0;
  uint32_t workers = 1;
  // Whether a contribution is answered with the state of the block before that contribution
  // (elastic exchange).
  bool elastic = false;
  // The number of clocks between two cuts, or 0 if no cuts are made.
  uint64_t cut_every = 0;
  // In sync mode: whether the caller specifies which contributions make up a clock (OnCommitted).
  // If not, every clock needs the contributions of all workers.
  bool committed_sets = false;
};

// The sender of a message, and its clock.
struct Sender {
  uint32_t rank = 0;
  uint64_t incarnation = 0;
  uint64_t clock = 0;
};

// The number that the driver gives to a request that waits for an answer.
using RequestId = uint64_t;
// The inline capacity is 1, because outside of sync mode an update usually has one request.
using RequestIds = absl::InlinedVector<RequestId, 1>;

// Which state of the block answers a reader.
enum class Readable { kCurrent, kPrevious };

struct Answer {
  RequestId request = 0;
  Readable which = Readable::kCurrent;
  // The number of clocks by which the slowest live rank is behind the reader's next clock.
  uint64_t staleness = 0;
  bool duplicate = false;
};

struct Refusal {
  RequestId request = 0;
  absl::Status status;
};

// An update that the driver must run and then report with OnApplied or OnRejected. It applies
// `contributions`, in this order, as one aggregate.
struct Update {
  uint64_t clock = 0;
  RequestIds contributions;
};

// What the driver must do. The order is: keep the block for the cut, send the answers, begin the
// update.
struct Decisions {
  // The clock of a cut for which the driver must keep the block in its present state.
  std::optional<uint64_t> cut;
  absl::InlinedVector<Answer, 1> answers;
  std::vector<Refusal> refusals;
  // The requests that continue to wait. Each status says what the request waits for.
  std::vector<Refusal> reminders;
  std::optional<Update> update;
  // Whether the driver must keep the contribution that was just passed in until its update. If
  // false, the driver drops the contribution.
  bool accepted = false;
  // Contributions that the driver has kept until now and can drop, because no update will use them.
  RequestIds dropped;
};

// The progress of a block. A checkpoint stores it beside the values of the block.
struct BlockProgress {
  // The number of applied updates, as cuts, schedules and the job's end count them. If the job was
  // resumed with another number of workers or in another mode, it is the number of updates that the
  // present workers and mode would have made until then.
  uint64_t version = 0;
  // By rank: the number of applied contributions. This is also the clock of the rank's next
  // contribution.
  std::vector<uint64_t> clocks;
  // By rank, with committed sets only: the clock after the rank's last applied contribution. (With
  // committed sets, `clocks` contains the version for every rank.) A checkpoint does not store it.
  std::vector<uint64_t> counted = {};
  // The number of updates that the optimizer state includes.
  uint64_t updates = 0;
};

// Not thread-safe. The caller supplies the time in any unit. The time must not run backwards.
class BlockCore {
 public:
  // `block` is the number of the block. Only messages use it.
  BlockCore(uint32_t block, const ConsistencyRules& rules);

  // Reports that the block has its first version, or the version of a checkpoint. To be called
  // once. Until then all calls except OnSetLive and OnAttach are answered with UNAVAILABLE.
  // `has_previous`, for sync mode, says whether the previous version is readable, too.
  Decisions OnInitialized(BlockProgress progress, bool has_previous = false);

  // Begins a new life of a rank, or lets a rank continue that was left out of a clock. Returns the
  // clock at which the rank continues, or ABORTED if a newer life exists. The rank must repeat
  // contributions that are held but not applied yet, because a server that takes over this block
  // does not have them.
  absl::StatusOr<uint64_t> OnAttach(uint32_t rank, uint64_t incarnation);
  // Handles a contribution. If `wants_reply`, the request is also a reader that starts sender.clock
  // + 1. Otherwise the request is answered as soon as its contribution is applied.
  Decisions OnContribution(const Sender& sender, RequestId request, bool wants_reply, uint64_t now);
  // With committed sets only: specifies that the contributions of exactly `ranks` (in rising order)
  // make up clock `clock`. Only the first call for a clock counts; calls for older clocks are
  // ignored.
  Decisions OnCommitted(uint64_t clock, const std::vector<uint32_t>& ranks);
  // Handles a reader that starts sender.clock.
  Decisions OnRead(const Sender& sender, RequestId request, uint64_t now);
  // Handles a reader that accepts the current state. The reader need not be a worker.
  Decisions OnReadLatest(RequestId request, uint64_t now);
  // Reports that the last decided update is done.
  Decisions OnApplied();
  // Reports that the last decided update cannot be made because of `contributions`, of which there
  // is at least one. The core forgets these contributions and all later contributions of the same
  // ranks. It refuses the requests that wait for a forgotten contribution. The caller keeps the
  // update's other contributions until another update.
  Decisions OnRejected(const std::vector<Refusal>& contributions);
  // Sets whether other ranks wait for `rank`. This has no effect in sync mode, where every rank is
  // waited for, even a rank that is gone. With committed sets the process that commits the sets
  // decides.
  Decisions OnSetLive(uint32_t rank, bool live);
  // Refuses with UNAVAILABLE the requests that have waited since before `since`, and names the
  // missing workers.
  Decisions OnTick(uint64_t since) { return OnTick(since, since, nullptr); }
  // The same, except for requests for which `stays` returns true. Such a request gets a reminder
  // and continues to wait as if it had come at `now`, unless its contribution must be sent again.
  Decisions OnTick(uint64_t since, uint64_t now, const std::function<bool(RequestId)>& stays);

  bool initialized() const { return initialized_; }
  bool has_waiters() const { return !waiters_.empty() || !held_up_.empty(); }
  const BlockProgress& progress() const { return progress_; }
  // The number of ranks that are not lost and have not left.
  uint32_t live() const { return live_; }
  // Whether the rank's contribution of the clock has been accepted or given up. If true, a
  // repetition is a duplicate.
  bool has(uint32_t rank, uint64_t clock) const {
    return rank < ranks_.size() && ranks_[rank].next > clock;
  }
  // The clock after the rank's last applied contribution.
  uint64_t counted(uint32_t rank) const {
    return rules_.committed_sets ? progress_.counted[rank] : progress_.clocks[rank];
  }
  // Whether no contribution is being applied or waits for its turn. (In sync mode contributions may
  // wait for their set.)
  bool idle() const {
    return running_.empty() && (pending_.empty() || rules_.mode == Consistency::kSync);
  }

 private:
  struct Rank {
    uint64_t incarnation = 0;
    // The first clock of which the contribution is neither accepted nor, with committed sets, given
    // up.
    uint64_t next = 0;
    bool live = true;
  };
  struct Waiter {
    RequestId request = 0;
    // The rank, and the clock that the rank starts. If absent, any state of the block answers the
    // request.
    std::optional<Sender> reader;
    // Whether the answer is the state before the contribution of the request.
    bool before = false;
    bool duplicate = false;
    uint64_t since = 0;
    // Whether the request brought a contribution. The clock of that contribution is reader->clock -
    // 1.
    bool contributes = false;
    // Whether the request wants the values of the block. If false, it only waits until its
    // contribution is applied.
    bool reads = true;
  };
  struct Pending {
    uint32_t rank = 0;
    uint64_t clock = 0;
    RequestId request = 0;
  };

  absl::Status CheckSender(const Sender& sender);
  absl::Status CheckClock(const Sender& sender) const;
  // With committed sets only: whether the clock's set is known and lacks the sender's contribution.
  bool IsLate(const Sender& sender) const;
  // Returns the set of the current clock, or null if the set is not known yet.
  const std::vector<uint32_t>* Set() const;
  // Whether the rank is in the set of the current clock, which must be known.
  bool InSet(uint32_t rank) const;
  absl::Status Overtaken(uint32_t rank, uint64_t wanted) const;
  // Puts a reader into the queue, and answers it if it need not wait.
  void AddReader(Waiter waiter, Decisions& decisions);
  // Returns nullopt if the reader must wait.
  std::optional<Answer> TryRead(const Waiter& waiter) const;
  std::optional<Answer> TryReadSync(const Waiter& waiter) const;
  bool MayRead(const Waiter& waiter) const;
  // Whether the request waits for no other rank's contributions.
  bool WaitsForOwnOnly(const Waiter& waiter) const;
  absl::Status CheckReadable(const Waiter& waiter) const;
  // In sync mode: whether the reader wants the version before the current one.
  bool WantsPrevious(const Waiter& waiter) const;
  void ReleaseWaiters(Decisions& decisions);
  // Answers the waiter, or refuses it if its life was replaced. Returns false if the waiter must
  // continue to wait.
  bool Release(const Waiter& waiter, Decisions& decisions);
  // In bounded mode: answers the readers for which the slowest rank has come far enough.
  void ReleaseHeldUp(Decisions& decisions);
  // Whether only the slowest rank delays the answer to the request.
  bool IsHeldUp(const Waiter& waiter) const;
  void BeginUpdate(Decisions& decisions);
  // In sync mode: whether all contributions of the current clock's update have arrived.
  bool IsComplete() const;
  // If the set of the current clock is known, drops the held contributions of ranks outside the set
  // and refuses the requests that wait for these contributions.
  void DropOthers(Decisions& decisions);
  // Sets the rank's next clock back to the clock of `contribution`, which is part of the rejected
  // update.
  void Forget(const Pending& contribution, const absl::Status& status, Decisions& decisions);
  void TakeCut(Decisions& decisions);
  // The clock that decides when a cut is made: the version in sync mode, otherwise the mean
  // clock of the ranks. This clock rises steadily, even if a rank is lost or slow.
  uint64_t CutClock() const;
  // The clock of the slowest live rank: all live ranks' contributions of lower clocks have been
  // applied. Not for sync mode.
  uint64_t SlowestClock() const;
  // Adds `change` to the number of live ranks at `clock` (standing_).
  void Stand(uint64_t clock, int change);
  // Moves one live rank from a clock to another.
  void MoveOn(uint64_t from, uint64_t to);
  uint64_t StalenessOf(const Sender& reader) const;
  // Whether the request's contribution is here or applied, and the sender's life was not replaced.
  bool Stands(const Waiter& waiter) const;
  // The reasons why readers wait. The key is the awaited clock, and whether contributions of other
  // ranks are awaited. Readers with the same key wait for the same ranks.
  using Lateness = std::map<std::pair<std::optional<uint64_t>, bool>, absl::Status>;
  const absl::Status& WhyLate(const Waiter& waiter, Lateness& known) const;
  std::string Missing(const Waiter& waiter) const;
  std::string Name(uint32_t rank) const;

  const uint32_t block_;
  const ConsistencyRules rules_;
  bool initialized_ = false;
  // Whether an update has been made since the first version, so that there is a previous version.
  bool has_previous_ = false;
  BlockProgress progress_;
  std::vector<Rank> ranks_;
  uint32_t live_;
  // Contributions that are accepted but not yet in an update, in the order of acceptance.
  std::deque<Pending> pending_;
  // The contributions of the running update.
  std::vector<Pending> running_;
  // The committed sets by clock, from the current one on.
  std::map<uint64_t, std::vector<uint32_t>> sets_;
  // Requests that wait for an update, usually the update with their own contribution.
  std::vector<Waiter> waiters_;
  // In bounded mode: the readers that wait for other ranks, by the clock that the slowest rank must
  // reach. So an update only looks at readers that may continue, however many readers wait.
  std::map<uint64_t, std::vector<Waiter>> held_up_;
  // By clock: the number of live ranks whose entry in progress_.clocks is this clock. Empty in sync
  // mode.
  std::map<uint64_t, uint32_t> standing_;
  uint64_t next_cut_ = 0;
};

}  // namespace leeway
