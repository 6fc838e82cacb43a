// Decides what happens to the requests for one block, and when. BlockCore implements the
// consistency modes as a pure state machine, without threads, clocks, RNG, I/O, gRPC or floats. Its
// methods accept events and return decisions, so tests can run every order of events.
//
// The rules (docs/consistency.md):
// - The pair (rank, clock) identifies a contribution. A contribution is accepted once, and
//   repeating it does no harm. A rank must send its contributions in the order of their clocks. The
//   core refuses an incarnation if it knows a newer one of the same rank.
// - sync: clock c is applied as one update, in rank order, when the contributions of all ranks have
//   arrived. A reader that starts clock c gets exactly version c. Version c - 1 stays readable
//   until version c + 1 is made, because a restarted worker may have to repeat clock c - 1.
// - sync, of all: one sender may hand in the mean of all ranks' contributions of a clock. It counts
//   for every rank, so it completes the clock alone. Not with committed sets.
// - sync with committed sets: the driver says which contributions make up clock c (OnCommitted).
//   The set is the same for every block of the job, and no other contribution is ever applied at
//   clock c. A contribution outside the set is dropped, whether it is already here or arrives
//   later, and its sender gets ALREADY_EXISTS. A reader also gets ALREADY_EXISTS if the version
//   that it wants is no longer kept. A rank that gets the error continues at the clock that
//   OnAttach returns.
// - bounded: a contribution is applied on arrival. A reader that starts clock c waits until every
//   live rank's contributions of clocks < c - s are applied, and the reader's own contributions of
//   clocks < c.
// - async: as bounded, but a reader waits only for its own contributions.
// - In every mode, a sender that wants no values is answered when its contribution is applied. So
//   every contribution that was answered is in the block's version, and in every copy of that
//   version.
// - One update of the block runs at a time, in the order of acceptance. Readers need not wait for
//   it, because the current version stays until the update is done.
// - If a value in a contribution is not finite, the update is not made. The core then refuses that
//   contribution and acts as if it had never come. The set's other contributions wait until its
//   sender sends it again.
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
  // True if a contribution is answered with the state of the block before that contribution
  // (elastic exchange).
  bool elastic = false;
  // The number of clocks between two cuts, or 0 if no cuts are made.
  uint64_t cut_every = 0;
  // For sync mode. If true, the caller says which contributions make up a clock (OnCommitted). If
  // false, every clock needs the contributions of all workers.
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
  // Concerns the contribution that was just passed in. If true, the driver must keep it until its
  // update. If false, the driver drops it.
  bool accepted = false;
  // Kept contributions that the driver can drop now, because no update will use them.
  RequestIds dropped;
};

// The progress of a block. A checkpoint stores it beside the values of the block.
struct BlockProgress {
  // The number of applied updates, as cuts, schedules and the job's end count them. If the job was
  // resumed with another number of workers or in another mode, earlier updates count as the number
  // that the present workers would have made in the present mode.
  uint64_t version = 0;
  // By rank: the number of applied contributions. This is also the clock of the rank's next
  // contribution.
  std::vector<uint64_t> clocks;
  // Only with committed sets, where `clocks` has the version for every rank. By rank: the clock
  // after the rank's last applied contribution. A checkpoint does not store this.
  std::vector<uint64_t> counted = {};
  // The number of updates that the optimizer state includes.
  uint64_t updates = 0;
};

// Not thread-safe. The caller supplies the time in any unit. The time must not run backwards.
class BlockCore {
 public:
  // `block` is the number of the block. Only messages use it.
  BlockCore(uint32_t block, const ConsistencyRules& rules);

  // Reports that the block has its first version, or the version of a checkpoint. Call this once.
  // Until then the core refuses all requests except OnAttach with UNAVAILABLE. For sync mode,
  // `has_previous` is true if the previous version is readable, too.
  Decisions OnInitialized(BlockProgress progress, bool has_previous = false);

  // Begins a new life of a rank, or brings back a rank that was left out of a clock. Returns the
  // clock at which the rank continues, or ABORTED if a newer life exists. The rank must repeat
  // contributions that are held here but not applied, because a server that takes over this block
  // does not have them.
  absl::StatusOr<uint64_t> OnAttach(uint32_t rank, uint64_t incarnation);
  // Handles a contribution. If `wants_reply` is true, the request also reads, as a reader that
  // starts sender.clock + 1. Otherwise the request is answered as soon as its contribution is
  // applied.
  Decisions OnContribution(const Sender& sender, RequestId request, bool wants_reply,
                           uint64_t now) {
    return OnContribution(sender, request, wants_reply, now, /*of_all=*/false);
  }
  // Handles a contribution that is the mean of all ranks' contributions of sender.clock. Refuses it
  // if a rank has sent its own contribution of that clock. In sync mode without committed sets
  // only.
  Decisions OnContributionOfAll(const Sender& sender, RequestId request, bool wants_reply,
                                uint64_t now) {
    return OnContribution(sender, request, wants_reply, now, /*of_all=*/true);
  }
  // With committed sets only: makes `ranks` (in rising order) the set of `clock`, so that exactly
  // their contributions make up the clock. Only the first call for a clock counts; calls for older
  // clocks are ignored.
  Decisions OnCommitted(uint64_t clock, const std::vector<uint32_t>& ranks);
  // Handles a reader that starts sender.clock.
  Decisions OnRead(const Sender& sender, RequestId request, uint64_t now);
  // Handles a reader that accepts the current state. The reader need not be a worker.
  Decisions OnReadLatest(RequestId request, uint64_t now);
  // Reports that the last decided update is done.
  Decisions OnApplied();
  // Reports that the last decided update cannot be made, and names the contributions to blame (at
  // least one). The core forgets these and all later contributions of the same ranks, and refuses
  // the requests that wait for a forgotten contribution. The caller keeps the update's other
  // contributions for a later update.
  Decisions OnRejected(const std::vector<Refusal>& contributions);
  // Sets whether other ranks wait for `rank`. This has no effect in sync mode, where a clock waits
  // for every rank, even for a lost one. With committed sets the coordinator decides which ranks to
  // wait for.
  Decisions OnSetLive(uint32_t rank, bool live);
  // Refuses with UNAVAILABLE each request that began to wait before `since`. The error names the
  // missing workers.
  Decisions OnTick(uint64_t since) { return OnTick(since, since, nullptr); }
  // The same, except for requests for which `stays` returns true. Such a request gets a reminder
  // and continues to wait as if it had come at `now`. If its contribution must be sent again, it is
  // refused all the same.
  Decisions OnTick(uint64_t since, uint64_t now, const std::function<bool(RequestId)>& stays);

  bool initialized() const { return initialized_; }
  bool has_waiters() const { return !waiters_.empty() || !held_up_.empty(); }
  const BlockProgress& progress() const { return progress_; }
  // The number of ranks that are not lost and have not left.
  uint32_t live() const { return live_; }
  // Returns true if the rank's contribution of the clock has been accepted or given up. If true, a
  // repetition is a duplicate.
  bool has(uint32_t rank, uint64_t clock) const {
    return rank < ranks_.size() && ranks_[rank].next > clock;
  }
  // The clock after the rank's last applied contribution.
  uint64_t counted(uint32_t rank) const {
    return rules_.committed_sets ? progress_.counted[rank] : progress_.clocks[rank];
  }
  // Returns true if the core has no contribution to apply: no update runs, and no contribution
  // waits for its turn. (In sync mode contributions may still wait for their set.)
  bool idle() const {
    return running_.empty() && (pending_.empty() || rules_.mode == Consistency::kSync);
  }

 private:
  struct Rank {
    uint64_t incarnation = 0;
    // The lowest clock whose contribution is still wanted from the rank: the contribution was not
    // accepted yet or, with committed sets, not given up.
    uint64_t next = 0;
    bool live = true;
  };
  struct Waiter {
    RequestId request = 0;
    // The rank, and the clock that the rank starts. If absent, any state of the block answers the
    // request.
    std::optional<Sender> reader;
    // True if the answer is the state before the contribution of the request.
    bool before = false;
    bool duplicate = false;
    uint64_t since = 0;
    // True if the request brought a contribution. The clock of that contribution is reader->clock -
    // 1.
    bool contributes = false;
    // True if the request wants the values of the block. If false, it only waits until its
    // contribution is applied.
    bool reads = true;
  };
  struct Pending {
    uint32_t rank = 0;
    uint64_t clock = 0;
    RequestId request = 0;
    // True if the contribution is that of every rank.
    bool of_all = false;
  };

  Decisions OnContribution(const Sender& sender, RequestId request, bool wants_reply, uint64_t now,
                           bool of_all);
  // Returns an error if a contribution of all ranks would count a rank twice.
  absl::Status CheckOfAll(const Sender& sender) const;
  // Calls `visit` for each rank that the contribution counts for.
  template <typename Visit>
  void ForRanksOf(const Pending& contribution, const Visit& visit) {
    if (!contribution.of_all) return visit(contribution.rank);
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) visit(rank);
  }
  absl::Status CheckSender(const Sender& sender);
  absl::Status CheckClock(const Sender& sender) const;
  // Returns true if, with committed sets, the clock's set is known and lacks the sender's
  // contribution.
  bool IsLate(const Sender& sender) const;
  // Returns the set of the current clock, or null if the set is not known yet.
  const std::vector<uint32_t>* Set() const;
  // Returns true if the rank is in the set of the current clock. Call it only if that set is known.
  bool InSet(uint32_t rank) const;
  absl::Status Overtaken(uint32_t rank, uint64_t wanted) const;
  // Puts a reader into the queue, and answers it if it need not wait.
  void AddReader(Waiter waiter, Decisions& decisions);
  // Returns nullopt if the reader must wait.
  std::optional<Answer> TryRead(const Waiter& waiter) const;
  std::optional<Answer> TryReadSync(const Waiter& waiter) const;
  bool MayRead(const Waiter& waiter) const;
  // Returns true if the request waits for no other rank's contributions.
  bool WaitsForOwnOnly(const Waiter& waiter) const;
  absl::Status CheckReadable(const Waiter& waiter) const;
  // Returns true if, in sync mode, the reader wants the version before the current one.
  bool WantsPrevious(const Waiter& waiter) const;
  void ReleaseWaiters(Decisions& decisions);
  // Answers the waiter, or refuses it if its life was replaced. Returns false if the waiter must
  // continue to wait.
  bool Release(const Waiter& waiter, Decisions& decisions);
  // In bounded mode: answers the readers for which the slowest rank has come far enough.
  void ReleaseHeldUp(Decisions& decisions);
  // Returns true if only the slowest rank delays the answer to the request.
  bool IsHeldUp(const Waiter& waiter) const;
  void BeginUpdate(Decisions& decisions);
  // Returns true if, in sync mode, all contributions of the current clock's update have arrived.
  bool IsComplete() const;
  // If the set of the current clock is known, drops the held contributions of ranks outside the set
  // and refuses the requests that wait for these contributions.
  void DropOthers(Decisions& decisions);
  // Makes the rank repeat `contribution`, which is part of the rejected update: sets the rank's
  // next clock back to its clock.
  void Forget(const Pending& contribution, const absl::Status& status, Decisions& decisions);
  void TakeCut(Decisions& decisions);
  // Returns the clock that decides when a cut is made: the version in sync mode, otherwise the mean
  // clock of the ranks. The mean rises steadily, even if a rank is lost or slow.
  uint64_t CutClock() const;
  // Returns the clock of the slowest live rank: every live rank's contributions of lower clocks
  // have been applied. Not for sync mode.
  uint64_t SlowestClock() const;
  // Adds `change` to standing_[clock], the number of live ranks at `clock`.
  void Stand(uint64_t clock, int change);
  // Moves one live rank from a clock to another.
  void MoveOn(uint64_t from, uint64_t to);
  uint64_t StalenessOf(const Sender& reader) const;
  // Returns true if the request's contribution is held here or applied, and no newer life has
  // replaced the sender's.
  bool Stands(const Waiter& waiter) const;
  // The reasons why readers wait. The key is the clock that a reader starts, and true if the reader
  // waits for its own contributions only. Readers with the same key wait for the same ranks.
  using Lateness = std::map<std::pair<std::optional<uint64_t>, bool>, absl::Status>;
  const absl::Status& WhyLate(const Waiter& waiter, Lateness& known) const;
  std::string Missing(const Waiter& waiter) const;
  std::string Name(uint32_t rank) const;

  const uint32_t block_;
  const ConsistencyRules rules_;
  bool initialized_ = false;
  // True if an update has been made since the first version, so that there is a previous version.
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
  // reach. With this index an update looks only at readers that may continue, however many wait.
  std::map<uint64_t, std::vector<Waiter>> held_up_;
  // By clock: how many live ranks have this clock in progress_.clocks. Empty in sync mode.
  std::map<uint64_t, uint32_t> standing_;
  uint64_t next_cut_ = 0;
};

}  // namespace leeway
