#include "server/core/block_core.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace leeway {

BlockCore::BlockCore(uint32_t block, const ConsistencyRules& rules)
    : block_(block), rules_(rules), ranks_(rules.workers), live_(rules.workers) {
  progress_.clocks.assign(rules.workers, 0);
  if (rules.committed_sets) progress_.counted.assign(rules.workers, 0);
}

Decisions BlockCore::OnInitialized(BlockProgress progress, bool has_previous) {
  Decisions decisions;
  if (initialized_) return decisions;
  initialized_ = true;
  has_previous_ = has_previous;
  progress_ = std::move(progress);
  progress_.clocks.resize(ranks_.size(), 0);
  progress_.counted.resize(rules_.committed_sets ? ranks_.size() : 0, 0);
  for (size_t r = 0; r < ranks_.size(); ++r) {
    ranks_[r].next = progress_.clocks[r];
    if (ranks_[r].live) Stand(progress_.clocks[r], 1);
  }
  if (rules_.cut_every > 0) {
    next_cut_ = (CutClock() / rules_.cut_every + 1) * rules_.cut_every;
  }
  // A reader that already waits may want a version that the checkpoint does not have.
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    absl::Status status = CheckReadable(waiter);
    if (status.ok()) return false;
    decisions.refusals.push_back({waiter.request, std::move(status)});
    return true;
  });
  ReleaseWaiters(decisions);
  return decisions;
}

absl::StatusOr<uint64_t> BlockCore::OnAttach(uint32_t rank, uint64_t incarnation) {
  absl::Status status = CheckSender({rank, incarnation, 0});
  if (!status.ok()) return status;
  const uint64_t clock = progress_.clocks[rank];
  return IsLate({rank, incarnation, clock}) ? clock + 1 : clock;
}

Decisions BlockCore::OnContribution(const Sender& sender, RequestId request, bool wants_reply,
                                    uint64_t now, bool of_all) {
  Decisions decisions;
  absl::Status status = CheckSender(sender);
  if (status.ok()) status = CheckClock(sender);
  if (status.ok() && of_all) status = CheckOfAll(sender);
  if (!status.ok()) {
    decisions.refusals.push_back({request, std::move(status)});
    return decisions;
  }
  const bool duplicate = sender.clock < ranks_[sender.rank].next;
  if (!duplicate) {
    decisions.accepted = true;
    const Pending& accepted =
        pending_.emplace_back(Pending{sender.rank, sender.clock, request, of_all});
    ForRanksOf(accepted, [&](uint32_t rank) { ranks_[rank].next = sender.clock + 1; });
    BeginUpdate(decisions);
  }
  const Sender reader{sender.rank, sender.incarnation, sender.clock + 1};
  const bool before = wants_reply && rules_.elastic;
  AddReader({request, reader, before, duplicate, now, true, wants_reply}, decisions);
  return decisions;
}

Decisions BlockCore::OnRead(const Sender& sender, RequestId request, uint64_t now) {
  Decisions decisions;
  absl::Status status = CheckSender(sender);
  if (!status.ok()) {
    decisions.refusals.push_back({request, std::move(status)});
    return decisions;
  }
  AddReader({request, sender, false, false, now}, decisions);
  return decisions;
}

Decisions BlockCore::OnReadLatest(RequestId request, uint64_t now) {
  Decisions decisions;
  AddReader({request, std::nullopt, false, false, now}, decisions);
  return decisions;
}

Decisions BlockCore::OnApplied() {
  Decisions decisions;
  ++progress_.version;
  ++progress_.updates;
  has_previous_ = true;
  for (const Pending& contribution : running_) {
    ForRanksOf(contribution, [&](uint32_t rank) {
      uint64_t& clock = progress_.clocks[rank];
      if (ranks_[rank].live) MoveOn(clock, contribution.clock + 1);
      clock = contribution.clock + 1;
      if (rules_.committed_sets) progress_.counted[rank] = clock;
    });
  }
  running_.clear();
  if (rules_.committed_sets) {
    // Every rank may contribute to the next clock, even a rank that was not in the set.
    progress_.clocks.assign(ranks_.size(), progress_.version);
    sets_.erase(sets_.begin(), sets_.lower_bound(progress_.version));
    DropOthers(decisions);
  }
  TakeCut(decisions);
  ReleaseWaiters(decisions);
  BeginUpdate(decisions);
  return decisions;
}

Decisions BlockCore::OnRejected(const std::vector<Refusal>& contributions) {
  Decisions decisions;
  const std::vector<Pending> running = std::exchange(running_, {});
  for (const Pending& contribution : running) {
    const auto bad = std::find_if(
        contributions.begin(), contributions.end(),
        [&](const Refusal& refusal) { return refusal.request == contribution.request; });
    if (bad == contributions.end()) {
      pending_.push_back(contribution);
    } else {
      Forget(contribution, bad->status, decisions);
    }
  }
  BeginUpdate(decisions);
  return decisions;
}

void BlockCore::Forget(const Pending& contribution, const absl::Status& status,
                       Decisions& decisions) {
  const uint32_t rank = contribution.rank;
  ForRanksOf(contribution, [&](uint32_t each) { ranks_[each].next = contribution.clock; });
  std::erase_if(pending_, [&](const Pending& later) {
    if (later.rank == rank) decisions.dropped.push_back(later.request);
    return later.rank == rank;
  });
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    const auto& reader = waiter.reader;
    if (!reader || reader->rank != rank || reader->clock <= contribution.clock) return false;
    decisions.refusals.push_back({waiter.request, status});
    return true;
  });
}

Decisions BlockCore::OnSetLive(uint32_t rank, bool live) {
  Decisions decisions;
  if (rank >= ranks_.size() || ranks_[rank].live == live) return decisions;
  ranks_[rank].live = live;
  live_ += live ? 1 : -1;
  if (!initialized_) return decisions;
  Stand(progress_.clocks[rank], live ? 1 : -1);
  ReleaseWaiters(decisions);
  return decisions;
}

Decisions BlockCore::OnTick(uint64_t since, uint64_t now,
                            const std::function<bool(RequestId)>& stays) {
  Decisions decisions;
  Lateness late;
  const auto remind = [&](Waiter& waiter) {
    if (waiter.since > since || !stays(waiter.request) || !Stands(waiter)) return;
    waiter.since = now;
    decisions.reminders.push_back({waiter.request, WhyLate(waiter, late)});
  };
  const auto refuse = [&](const Waiter& waiter) {
    if (waiter.since > since) return false;
    decisions.refusals.push_back({waiter.request, WhyLate(waiter, late)});
    return true;
  };
  const auto tick = [&](std::vector<Waiter>& waiters) {
    if (stays) std::for_each(waiters.begin(), waiters.end(), remind);
    std::erase_if(waiters, refuse);
  };
  tick(waiters_);
  for (auto& [clock, waiters] : held_up_) tick(waiters);
  std::erase_if(held_up_, [](const auto& each) { return each.second.empty(); });
  return decisions;
}

const absl::Status& BlockCore::WhyLate(const Waiter& waiter, Lateness& known) const {
  std::optional<uint64_t> clock;
  if (waiter.reader.has_value()) clock = waiter.reader->clock;
  const auto [found, first] = known.try_emplace({clock, WaitsForOwnOnly(waiter)});
  if (first) found->second = absl::UnavailableError(Missing(waiter));
  return found->second;
}

bool BlockCore::Stands(const Waiter& waiter) const {
  if (!waiter.reader.has_value()) return true;
  const Rank& rank = ranks_[waiter.reader->rank];
  return waiter.reader->incarnation == rank.incarnation &&
         (!waiter.contributes || rank.next >= waiter.reader->clock);
}

absl::Status BlockCore::CheckSender(const Sender& sender) {
  if (sender.rank >= ranks_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("header.rank: the sender says that it is worker ", sender.rank,
                     ", but the job's workers are 0 to ", ranks_.size() - 1));
  }
  Rank& rank = ranks_[sender.rank];
  if (sender.incarnation < rank.incarnation) {
    return absl::AbortedError(absl::StrCat(
        "header.incarnation: worker ", sender.rank, " (incarnation ", sender.incarnation,
        ") was replaced by incarnation ", rank.incarnation, "; this process must stop"));
  }
  rank.incarnation = sender.incarnation;
  return absl::OkStatus();
}

absl::Status BlockCore::CheckClock(const Sender& sender) const {
  if (!initialized_) {
    return absl::UnavailableError(
        absl::StrCat("block ", block_, " has no values yet: a worker must send the first ones"));
  }
  const Rank& rank = ranks_[sender.rank];
  if (IsLate(sender)) return Overtaken(sender.rank, sender.clock);
  if (sender.clock > rank.next) {
    return absl::FailedPreconditionError(absl::StrCat(
        "header.clock: worker ", sender.rank, " sends clock ", sender.clock, " for block ", block_,
        ", which needs that worker's clock ", rank.next, " first"));
  }
  const bool ahead = rules_.mode == Consistency::kSync && sender.clock == rank.next &&
                     sender.clock > progress_.version;
  if (ahead) {
    return absl::FailedPreconditionError(absl::StrCat(
        "header.clock: worker ", sender.rank, " sends clock ", sender.clock, " for block ", block_,
        " before clock ", progress_.version, " is complete; pull clock ", sender.clock, " first"));
  }
  return absl::OkStatus();
}

absl::Status BlockCore::CheckOfAll(const Sender& sender) const {
  // The clock of a repetition is counted for every rank already.
  if (sender.clock < ranks_[sender.rank].next) return absl::OkStatus();
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].next <= sender.clock) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "header.of_all: worker ", sender.rank, " sends the mean of all contributions of clock ",
        sender.clock, " for block ", block_, ", but worker ", rank, " has sent its own"));
  }
  return absl::OkStatus();
}

void BlockCore::AddReader(Waiter waiter, Decisions& decisions) {
  if (absl::Status status = CheckReadable(waiter); !status.ok()) {
    decisions.refusals.push_back({waiter.request, std::move(status)});
    return;
  }
  if (std::optional<Answer> answer = TryRead(waiter)) {
    decisions.answers.push_back(*answer);
  } else {
    waiters_.push_back(std::move(waiter));
  }
}

absl::Status BlockCore::CheckReadable(const Waiter& waiter) const {
  if (!waiter.reader.has_value()) return absl::OkStatus();
  const Sender& reader = *waiter.reader;
  // A rank that was left out of a clock continues at the next one, even if that clock's set is not
  // known yet.
  const bool left_out = rules_.committed_sets && reader.clock == progress_.version + 1;
  if (reader.clock > ranks_[reader.rank].next && !left_out) {
    return absl::FailedPreconditionError(
        absl::StrCat("header.clock: worker ", reader.rank, " reads block ", block_, " for clock ",
                     reader.clock, " before it has sent clock ", ranks_[reader.rank].next));
  }
  const bool older = rules_.mode == Consistency::kSync && initialized_ && WantsPrevious(waiter);
  if (!waiter.reads || !older) return absl::OkStatus();
  // An elastic exchange reads the state before the contribution, which is one version older.
  const uint64_t newest = reader.clock + (waiter.before ? 0 : 1);
  const bool kept = has_previous_ && newest >= progress_.version;
  if (kept) return absl::OkStatus();
  if (rules_.committed_sets) return Overtaken(reader.rank, reader.clock);
  return absl::FailedPreconditionError(absl::StrCat(
      "header.clock: worker ", reader.rank, " reads block ", block_, " for clock ", reader.clock,
      ", but the block is at version ", progress_.version, ", and earlier versions are not kept"));
}

bool BlockCore::WantsPrevious(const Waiter& waiter) const {
  const uint64_t clock = waiter.reader->clock;
  return progress_.version > clock || (progress_.version == clock && waiter.before);
}

std::optional<Answer> BlockCore::TryRead(const Waiter& waiter) const {
  if (!initialized_) return std::nullopt;
  if (rules_.mode == Consistency::kSync) return TryReadSync(waiter);
  Answer answer{waiter.request, Readable::kCurrent, 0, waiter.duplicate};
  if (!waiter.reader.has_value()) return answer;
  if (!MayRead(waiter)) return std::nullopt;
  if (waiter.reads) answer.staleness = StalenessOf(*waiter.reader);
  return answer;
}

std::optional<Answer> BlockCore::TryReadSync(const Waiter& waiter) const {
  Answer answer{waiter.request, Readable::kCurrent, 0, waiter.duplicate};
  if (!waiter.reader.has_value()) return answer;
  if (progress_.version < waiter.reader->clock) return std::nullopt;
  const bool previous = waiter.reads && WantsPrevious(waiter);
  answer.which = previous ? Readable::kPrevious : Readable::kCurrent;
  return answer;
}

bool BlockCore::MayRead(const Waiter& waiter) const {
  const Sender& reader = *waiter.reader;
  if (progress_.clocks[reader.rank] < reader.clock) return false;
  return WaitsForOwnOnly(waiter) || StalenessOf(reader) <= rules_.staleness;
}

bool BlockCore::WaitsForOwnOnly(const Waiter& waiter) const {
  if (rules_.mode == Consistency::kBounded) return !waiter.reads;
  return rules_.mode == Consistency::kAsync;
}

void BlockCore::ReleaseWaiters(Decisions& decisions) {
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    if (Release(waiter, decisions)) return true;
    if (!IsHeldUp(waiter)) return false;
    held_up_[waiter.reader->clock - rules_.staleness].push_back(waiter);
    return true;
  });
  ReleaseHeldUp(decisions);
}

bool BlockCore::Release(const Waiter& waiter, Decisions& decisions) {
  std::optional<Answer> answer = TryRead(waiter);
  if (!answer) return false;
  // A life that was replaced must not continue beyond the clock at which its successor begins.
  absl::Status status = waiter.reader ? CheckSender(*waiter.reader) : absl::OkStatus();
  if (status.ok()) {
    decisions.answers.push_back(*answer);
  } else {
    decisions.refusals.push_back({waiter.request, std::move(status)});
  }
  return true;
}

bool BlockCore::IsHeldUp(const Waiter& waiter) const {
  return rules_.mode == Consistency::kBounded && initialized_ && waiter.reader.has_value() &&
         progress_.clocks[waiter.reader->rank] >= waiter.reader->clock;
}

void BlockCore::ReleaseHeldUp(Decisions& decisions) {
  const auto end = held_up_.upper_bound(SlowestClock());
  for (auto each = held_up_.begin(); each != end; ++each) {
    for (const Waiter& waiter : each->second) Release(waiter, decisions);
  }
  held_up_.erase(held_up_.begin(), end);
}

void BlockCore::BeginUpdate(Decisions& decisions) {
  if (!running_.empty() || pending_.empty()) return;
  if (rules_.mode == Consistency::kSync) {
    if (!IsComplete()) return;
    running_.assign(pending_.begin(), pending_.end());
    pending_.clear();
    std::sort(running_.begin(), running_.end(),
              [](const Pending& a, const Pending& b) { return a.rank < b.rank; });
  } else {
    running_.push_back(pending_.front());
    pending_.pop_front();
  }
  Update update{running_.front().clock, {}};
  for (const Pending& contribution : running_) update.contributions.push_back(contribution.request);
  decisions.update = std::move(update);
}

void BlockCore::TakeCut(Decisions& decisions) {
  if (rules_.cut_every == 0 || CutClock() < next_cut_) return;
  const uint64_t cut = CutClock() / rules_.cut_every * rules_.cut_every;
  decisions.cut = cut;
  next_cut_ = cut + rules_.cut_every;
}

uint64_t BlockCore::CutClock() const {
  if (rules_.mode == Consistency::kSync) return progress_.version;
  return progress_.version / ranks_.size();
}

uint64_t BlockCore::SlowestClock() const {
  if (!standing_.empty()) return standing_.begin()->first;
  return *std::max_element(progress_.clocks.begin(), progress_.clocks.end());
}

void BlockCore::Stand(uint64_t clock, int change) {
  if (rules_.mode == Consistency::kSync) return;
  const auto found = standing_.try_emplace(clock, 0).first;
  found->second += change;
  if (found->second == 0) standing_.erase(found);
}

void BlockCore::MoveOn(uint64_t from, uint64_t to) {
  const auto alone = standing_.find(from);
  if (alone != standing_.end() && alone->second == 1 && !standing_.contains(to)) {
    // This is the usual case. The node is reused, so nothing is allocated.
    auto node = standing_.extract(alone);
    node.key() = to;
    standing_.insert(std::move(node));
    return;
  }
  Stand(from, -1);
  Stand(to, 1);
}

uint64_t BlockCore::StalenessOf(const Sender& reader) const {
  const uint64_t slowest = SlowestClock();
  return reader.clock > slowest ? reader.clock - slowest : 0;
}

}  // namespace leeway
