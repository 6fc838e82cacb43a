// Decides what happens to the requests for one block, and when: the consistency modes as a pure
// state machine. It has no threads, clocks, RNG, I/O, gRPC or floats. Inputs go in and decisions
// come out, so that every schedule can be tested.
//
// The rules (docs/consistency.md):
// - A contribution has the name (rank, clock) and is accepted once. A repetition does no harm. A
//   rank sends its clocks one after the other. An incarnation is refused if a newer one of the same
//   rank is known.
// - sync: clock c is applied as one update, in rank order, when the contributions of all ranks are
//   there. A reader that starts clock c gets exactly version c. Version c - 1 stays readable until
//   version c + 1 is made, for a worker that has died meanwhile and repeats clock c - 1.
// - sync with committed sets: the driver says which contributions make clock c (OnCommitted). The
//   set is the same for every block of the job, and nothing else is ever applied. A contribution
//   outside the set is dropped, whether it is held or comes later, and its sender is told
//   (ALREADY_EXISTS). The same happens to a reader that wants a version that is not kept any more.
//   Its rank continues at the clock that OnAttach returns.
// - bounded: a contribution is applied on arrival. A reader that starts clock c waits until every
//   live rank's contributions of clocks < c - s, and its own of clocks < c, are applied. async: a
//   reader waits only for its own contributions.
// - In every mode, a sender that wants no values is answered when its contribution is applied. So
//   every answered contribution is part of the block's version, also where that version is sent.
// - One update of the block runs at a time, in the order of acceptance. Readers need not wait for
//   it, because the current version stays until the update is done.
// - A contribution that is not finite prevents its update. It then counts as never received, and
//   its sender is told. The other contributions of its set wait until the sender sends it again.
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
  // In clocks; for bounded only.
  uint64_t staleness = 0;
  uint32_t workers = 1;
  // The answer to a contribution is the block before that contribution (elastic exchange).
  bool elastic = false;
  // Clocks between cuts; 0: none.
  uint64_t cut_every = 0;
  // Sync: a clock's update is made of the contributions that the caller says (OnCommitted), and
  // not of all.
  bool committed_sets = false;
};

// The sender of a message, and its clock.
struct Sender {
  uint32_t rank = 0;
  uint64_t incarnation = 0;
  uint64_t clock = 0;
};

// The driver's number of a request that waits for an answer.
using RequestId = uint64_t;
// Outside of sync mode there is usually one.
using RequestIds = absl::InlinedVector<RequestId, 1>;

// Which state of the block answers a reader.
enum class Readable { kCurrent, kPrevious };

struct Answer {
  RequestId request = 0;
  Readable which = Readable::kCurrent;
  // By how many clocks the slowest live rank is behind the reader's next clock.
  uint64_t staleness = 0;
  bool duplicate = false;
};

struct Refusal {
  RequestId request = 0;
  absl::Status status;
};

// An update to run, and then to report with OnApplied or OnRejected. It applies these
// contributions, in this order, as one aggregate.
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
  // The senders that continue to wait, and what they wait for.
  std::vector<Refusal> reminders;
  std::optional<Update> update;
  // Whether to keep the contribution of the request just passed in until its update. If not, it is
  // dropped.
  bool accepted = false;
  // Contributions that were kept until now and will be in no update.
  RequestIds dropped;
};

// The progress of a block: what a checkpoint holds besides its values.
struct BlockProgress {
  // The number of applied updates, as cuts, schedules and the job's end count them. If a job was
  // resumed with other workers or in another mode, it is the number of updates that those would
  // have made until then.
  uint64_t version = 0;
  // By rank: the number of applied contributions, which is the next clock that the block wants.
  std::vector<uint64_t> clocks;
  // By rank, with committed sets: the clock after the rank's last applied contribution. (There,
  // `clocks` is the version for every rank.) Not in a checkpoint.
  std::vector<uint64_t> counted = {};
  // The number of applied updates that the optimizer state has seen.
  uint64_t updates = 0;
};

// Not thread-safe. The caller measures time, in any unit. It must not run backwards.
class BlockCore {
 public:
  // `block` is for messages.
  BlockCore(uint32_t block, const ConsistencyRules& rules);

  // The block has its first version, or that of a checkpoint. To be called once. Until then
  // everything but OnSetLive and OnAttach is answered UNAVAILABLE. `has_previous`: the previous
  // version is readable, too (sync).
  Decisions OnInitialized(BlockProgress progress, bool has_previous = false);

  // A rank's new life begins, or its old one was overtaken. Returns the clock at which it
  // continues, or ABORTED if a newer life exists. The rank must send again what is held but not
  // applied yet, because a server that takes over this block does not have it.
  absl::StatusOr<uint64_t> OnAttach(uint32_t rank, uint64_t incarnation);
  // `wants_reply`: the request is also a reader that starts sender.clock + 1. Otherwise it is
  // answered when the contribution is applied, and waits for nothing else.
  Decisions OnContribution(const Sender& sender, RequestId request, bool wants_reply, uint64_t now);
  // Committed sets: the contributions of exactly these ranks (in rising order) make clock `clock`.
  // The first call for a clock counts; repetitions and older clocks are ignored.
  Decisions OnCommitted(uint64_t clock, const std::vector<uint32_t>& ranks);
  // The sender is a reader that starts sender.clock.
  Decisions OnRead(const Sender& sender, RequestId request, uint64_t now);
  // A reader that takes the current state. It is not a worker.
  Decisions OnReadLatest(RequestId request, uint64_t now);
  // The last decided update is done.
  Decisions OnApplied();
  // The last decided update cannot be made because of these contributions, at least one. They are
  // forgotten, together with everything that their ranks have sent since. Readers that wait for
  // them are refused. The caller keeps the update's other contributions until another update.
  Decisions OnRejected(const std::vector<Refusal>& contributions);
  // Sets whether the others wait for a rank. In sync mode they wait for every rank, also for one
  // that is gone. With committed sets the process that commits them decides.
  Decisions OnSetLive(uint32_t rank, bool live);
  // Refuses with UNAVAILABLE the requests that have waited since before `since`, and names the
  // missing workers.
  Decisions OnTick(uint64_t since) { return OnTick(since, since, nullptr); }
  // The same, except for requests for which `stays` is true. They are reminded, and wait on as if
  // they had come at `now`, unless their contribution must be sent again.
  Decisions OnTick(uint64_t since, uint64_t now, const std::function<bool(RequestId)>& stays);

  bool initialized() const { return initialized_; }
  bool has_waiters() const { return !waiters_.empty() || !held_up_.empty(); }
  const BlockProgress& progress() const { return progress_; }
  // The number of ranks that are not lost and have not left.
  uint32_t live() const { return live_; }
  // Whether the rank's contribution of the clock has been accepted or given up, so that another one
  // is a duplicate.
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
    // The first clock that is not accepted yet and, with committed sets, not given up.
    uint64_t next = 0;
    bool live = true;
  };
  struct Waiter {
    RequestId request = 0;
    // The clock that it starts. Absent: any state is good.
    std::optional<Sender> reader;
    // Whether its contribution is answered with the state before it.
    bool before = false;
    bool duplicate = false;
    uint64_t since = 0;
    // Whether it brought a contribution, of the clock before.
    bool contributes = false;
    // Whether it wants the block, and not only to hear that its contribution is applied.
    bool reads = true;
  };
  struct Pending {
    uint32_t rank = 0;
    uint64_t clock = 0;
    RequestId request = 0;
  };

  absl::Status CheckSender(const Sender& sender);
  absl::Status CheckClock(const Sender& sender) const;
  // Committed sets: whether the clock's set is known and lacks the sender's contribution.
  bool IsLate(const Sender& sender) const;
  // The set of the current clock if it is known; and whether a rank is in it.
  const std::vector<uint32_t>* Set() const;
  bool InSet(uint32_t rank) const;
  absl::Status Overtaken(uint32_t rank, uint64_t wanted) const;
  // Puts a reader into the queue, and answers it if it need not wait.
  void AddReader(Waiter waiter, Decisions& decisions);
  // Returns nothing if the reader must wait.
  std::optional<Answer> TryRead(const Waiter& waiter) const;
  std::optional<Answer> TryReadSync(const Waiter& waiter) const;
  bool MayRead(const Waiter& waiter) const;
  // Whether it does not wait for the contributions of others.
  bool WaitsForOwnOnly(const Waiter& waiter) const;
  absl::Status CheckReadable(const Waiter& waiter) const;
  // Sync: whether the reader wants the version before the current one.
  bool WantsPrevious(const Waiter& waiter) const;
  void ReleaseWaiters(Decisions& decisions);
  // Answers the waiter, or refuses it if its life was replaced. Returns false if it must continue
  // to wait.
  bool Release(const Waiter& waiter, Decisions& decisions);
  // Bounded: answers the readers for which the slowest rank has come far enough.
  void ReleaseHeldUp(Decisions& decisions);
  // Whether only the slowest rank delays its answer.
  bool IsHeldUp(const Waiter& waiter) const;
  void BeginUpdate(Decisions& decisions);
  // Sync: whether all contributions of the current clock's update are here.
  bool IsComplete() const;
  // If the set is known, drops the held contributions of ranks outside it, and refuses the requests
  // that wait for them.
  void DropOthers(Decisions& decisions);
  // Sets the rank back to `contribution`, which is part of the rejected update.
  void Forget(const Pending& contribution, const absl::Status& status, Decisions& decisions);
  void TakeCut(Decisions& decisions);
  // The clock for cuts: the version in sync mode, otherwise the mean clock. It rises steadily, even
  // if a rank is lost or slow.
  uint64_t CutClock() const;
  // The contributions of all live ranks of clocks below this one have been applied. Not for sync
  // mode.
  uint64_t SlowestClock() const;
  // Counts a live rank at `clock`, or removes it there, or moves it.
  void Stand(uint64_t clock, int change);
  void MoveOn(uint64_t from, uint64_t to);
  uint64_t StalenessOf(const Sender& reader) const;
  // Whether its contribution is here or applied, and its life was not replaced.
  bool Stands(const Waiter& waiter) const;
  // The key: the awaited clock, and whether it is awaited from other ranks. Readers with the same
  // key wait for the same ranks.
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
  // Requests that wait for an update, usually that of their own contribution.
  std::vector<Waiter> waiters_;
  // Bounded: the readers that wait for others, by the clock that the slowest rank must reach. So an
  // update only looks at readers that may continue, however many wait.
  std::map<uint64_t, std::vector<Waiter>> held_up_;
  // By clock of progress_.clocks: the number of live ranks at it. Empty in sync mode.
  std::map<uint64_t, uint32_t> standing_;
  uint64_t next_cut_ = 0;
};

}  // namespace leeway
