#include "server/peers/piece_store.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/status.h"

namespace leeway {
namespace {

const char* NameOf(v1::Piece piece) { return piece == v1::PIECE_SUM ? "sum" : "weights"; }

// Returns a text such as "sum of block 7 at clock 12".
std::string TextOf(const PieceName& name) {
  return absl::StrCat(NameOf(name.piece), " of block ", name.block, " at clock ", name.clock);
}

}  // namespace

bool PieceStore::ByClock::operator()(const PieceName& a, const PieceName& b) const {
  return std::tie(a.clock, a.piece, a.block) < std::tie(b.clock, b.piece, b.block);
}

void PieceStore::Open(uint64_t job, uint64_t generation, const BlockLayout& layout) {
  auto pools = std::make_shared<const BlockPools>(layout, memory_(), nullptr);
  std::vector<Leaving> leaving;
  decltype(published_) before;
  {
    MutexLock lock(mutex_);
    const auto earlier = std::exchange(registered_.life, Registered::Life{job, generation});
    if (earlier && earlier != registered_.life) {
      RefuseAll(registered_.Check(rank_, earlier->job, earlier->generation), leaving);
    }
    blocks_ = layout.blocks();
    pools_ = std::move(pools);
    keep_from_ = 0;
    prepared_.clear();
    before.swap(published_);
  }
  Deliver(std::move(leaving));
}

std::span<float> PieceStore::Prepare(const PieceName& name) {
  std::shared_ptr<const BlockPools> pools;
  {
    MutexLock lock(mutex_);
    if (name.block >= blocks_) return {};
    const auto found = prepared_.find(name);
    if (found != prepared_.end()) {
      return {found->second.mutable_data(), found->second.span().size()};
    }
    pools = pools_;
  }
  // New memory is obtained without the lock.
  SharedFloats values = pools->Weights(name.block);
  MutexLock lock(mutex_);
  const SharedFloats& kept = prepared_.try_emplace(name, std::move(values)).first->second;
  return {kept.mutable_data(), kept.span().size()};
}

void PieceStore::Publish(const PieceName& name, uint64_t examples, uint64_t rates) {
  std::vector<Leaving> leaving;
  {
    MutexLock lock(mutex_);
    auto prepared = prepared_.extract(name);
    if (prepared.empty()) return;
    if (name.clock >= kClocksKept) Forget(name.clock - kClocksKept + 1, leaving);
    if (name.clock >= keep_from_) {
      const Piece& piece =
          published_.insert_or_assign(name, Piece{std::move(prepared.mapped()), examples, rates})
              .first->second;
      auto waiting = waiting_.extract(name);
      if (!waiting.empty()) {
        for (Waiter& waiter : waiting.mapped()) {
          leaving.push_back({std::move(waiter.done), ReadingOf(name, piece)});
        }
      }
    }
  }
  Deliver(std::move(leaving));
}

void PieceStore::KeepFrom(uint64_t clock) {
  std::vector<Leaving> leaving;
  {
    MutexLock lock(mutex_);
    Forget(clock, leaving);
  }
  Deliver(std::move(leaving));
}

void PieceStore::Forget(uint64_t clock, std::vector<Leaving>& leaving) {
  if (clock <= keep_from_) return;
  keep_from_ = clock;
  const PieceName first{.piece = static_cast<v1::Piece>(0), .clock = clock};
  prepared_.erase(prepared_.begin(), prepared_.lower_bound(first));
  published_.erase(published_.begin(), published_.lower_bound(first));
  const auto end = waiting_.lower_bound(first);
  for (auto late = waiting_.begin(); late != end; ++late) {
    for (Waiter& waiter : late->second) {
      leaving.push_back({std::move(waiter.done), NotKept(late->first)});
    }
  }
  waiting_.erase(waiting_.begin(), end);
}

absl::Status PieceStore::Check(const v1::ExchangeHeader& header, const PieceName& name) const {
  if (closed_) {
    return absl::UnavailableError(absl::StrCat("worker ", rank_, " ends; send the request again"));
  }
  RETURN_IF_ERROR(registered_.Check(rank_, header.job(), header.generation()));
  if (!v1::Piece_IsValid(name.piece)) {
    return absl::InvalidArgumentError(
        absl::StrCat("piece: ", static_cast<int>(name.piece), " is not known to worker ", rank_));
  }
  if (name.block >= blocks_) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", header.rank(), ": header.block: ", name.block,
                     " does not exist: the model has ", Counted(blocks_, "block")));
  }
  return name.clock < keep_from_ ? NotKept(name) : absl::OkStatus();
}

void PieceStore::Fetch(const v1::ExchangeHeader& header, v1::Piece piece, Time now, Done done,
                       Patience patience) {
  const PieceName name{piece, header.clock(), header.block()};
  absl::StatusOr<BlockReading> result = BlockReading();
  {
    MutexLock lock(mutex_);
    const absl::Status refused = Check(header, name);
    const auto found = published_.find(name);
    if (refused.ok() && found == published_.end()) {
      waiting_[name].push_back({std::move(done), std::move(patience), now});
      return;
    }
    result = refused.ok() ? absl::StatusOr<BlockReading>(ReadingOf(name, found->second)) : refused;
  }
  done(std::move(result));
}

BlockReading PieceStore::ReadingOf(const PieceName& name, const Piece& piece) {
  BlockReading reading;
  reading.values = piece.values;
  reading.header.set_block(name.block);
  reading.header.set_version(name.clock);
  reading.header.set_examples(piece.examples);
  reading.header.set_rates(piece.rates);
  return reading;
}

absl::Status PieceStore::NotKept(const PieceName& name) const {
  return absl::OutOfRangeError(absl::StrCat("header.clock: worker ", rank_, " does not keep its ",
                                            TextOf(name), " any more; it keeps clock ", keep_from_,
                                            " and later ones"));
}

std::string PieceStore::Missing(const PieceName& name) const {
  return absl::StrCat("worker ", rank_, " has not published its ", TextOf(name), " yet");
}

void PieceStore::Tick(Time since) {
  std::vector<Leaving> leaving;
  std::vector<std::pair<Patience, std::string>> reminders;
  {
    MutexLock lock(mutex_);
    for (auto& [name, waiters] : waiting_) {
      std::erase_if(waiters, [&, &name = name](Waiter& waiter) {
        if (waiter.since > since) return false;
        if (waiter.patience.stays()) {
          waiter.since = since + Shard::kWaitAtMost;
          reminders.emplace_back(waiter.patience, Missing(name));
          return false;
        }
        leaving.push_back({std::move(waiter.done), absl::UnavailableError(Missing(name))});
        return true;
      });
    }
    std::erase_if(waiting_, [](const auto& each) { return each.second.empty(); });
  }
  Deliver(std::move(leaving));
  for (const auto& [patience, missing] : reminders) {
    patience.sender->OnMissing(patience.id, missing);
  }
}

void PieceStore::RefuseAll(const absl::Status& status, std::vector<Leaving>& leaving) {
  for (auto& [name, waiters] : waiting_) {
    for (Waiter& waiter : waiters) leaving.push_back({std::move(waiter.done), status});
  }
  waiting_.clear();
}

void PieceStore::Close() {
  std::vector<Leaving> leaving;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    RefuseAll(
        absl::UnavailableError(absl::StrCat("worker ", rank_, " ends; send the request again")),
        leaving);
  }
  Deliver(std::move(leaving));
}

uint64_t PieceStore::waiting() const {
  uint64_t waiting = 0;
  MutexLock lock(mutex_);
  for (const auto& [name, waiters] : waiting_) waiting += waiters.size();
  return waiting;
}

void PieceStore::Deliver(std::vector<Leaving> leaving) {
  for (Leaving& each : leaving) each.done(std::move(each.result));
}

}  // namespace leeway
