#include "server/coordinator/core/cut_book.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/printable.h"
#include "common/status.h"

namespace leeway {
namespace {

// The most cuts that are open at a time. There can be many, because a worker may be many cuts ahead
// of the servers' files. At the limit, a new cut takes the place of a failed cut. If no cut has
// failed, the parts of the new cut are refused.
constexpr size_t kOpenCutsMax = 1024;

}  // namespace

CutBook::CutBook(uint32_t shards, uint32_t ranks, const v1::CheckpointManifest* resumed)
    : shards_(shards), ranks_(ranks) {
  if (resumed == nullptr) return;
  newest_ = resumed->clock();
  for (const v1::SavedWorkerState& state : resumed->worker_states()) {
    complete_states_[state.rank()] = {0, resumed->clock(), state.file()};
  }
  newest_states_ = complete_states_;
}

absl::StatusOr<CutBook::Cut*> CutBook::Open(uint64_t clock) {
  if (cuts_.size() >= kOpenCutsMax && cuts_.count(clock) == 0) {
    const auto failed = std::find_if(cuts_.begin(), cuts_.end(),
                                     [](const auto& cut) { return !cut.second.error.empty(); });
    if (failed == cuts_.end()) {
      return absl::ResourceExhaustedError(absl::StrCat("the cut at clock ", clock,
                                                       " cannot begin: ", cuts_.size(),
                                                       " other cuts are still waiting for parts"));
    }
    cuts_.erase(failed);
  }
  return &cuts_[clock];
}

bool CutBook::Settled(uint64_t clock) const {
  return (newest_ && clock <= *newest_) || Failed(clock) || Writing(clock);
}

absl::Status CutBook::AddShard(uint64_t clock, uint32_t shard, const v1::SavedShard& file,
                               Time now) {
  if (Settled(clock) || shard >= shards_) return absl::OkStatus();
  ASSIGN_OR_RETURN(Cut * cut, Open(clock));
  if (!cut->since) cut->since = now;
  const auto [place, fresh] = cut->shards.try_emplace(shard, file);
  if (!fresh && place->second.sha256() != file.sha256()) {
    cut->error = absl::StrCat("shard ", shard, " was reported twice, with different contents");
    return absl::FailedPreconditionError(
        absl::StrCat("the cut at clock ", clock, ": ", cut->error));
  }
  return absl::OkStatus();
}

absl::Status CutBook::AddState(uint64_t clock, uint32_t rank, const v1::SavedShard& file) {
  StateFile& newest = newest_states_[rank];
  // If a rank hands in two states of one clock, the earlier one stays: a life that begins where
  // another life stopped has nothing newer.
  const bool better = newest.file.file().empty() || clock > newest.clock;
  if (better) newest = {clock, clock, file};
  if (Settled(clock)) return absl::OkStatus();
  const absl::StatusOr<Cut*> cut = Open(clock);
  // If too many cuts are open, this cut never becomes complete, but training goes on.
  if (cut.ok()) (*cut)->states.try_emplace(rank, file);
  return absl::OkStatus();
}

std::string CutBook::ErrorOf(uint64_t clock) const {
  const auto cut = cuts_.find(clock);
  return cut == cuts_.end() ? "" : cut->second.error;
}

std::optional<uint64_t> CutBook::latest() const {
  std::optional<uint64_t> latest = newest_;
  for (const auto& [clock, cut] : cuts_) {
    if (!cut.shards.empty() || cut.writing) latest = std::max(latest.value_or(clock), clock);
  }
  return latest;
}

void CutBook::Fail(uint64_t clock, const std::string& error) {
  if (Settled(clock)) return;
  const absl::StatusOr<Cut*> cut = Open(clock);
  if (cut.ok()) (*cut)->error = error.empty() ? "unknown error" : error;
}

void CutBook::BeginLast(uint64_t clock, Time now) {
  if (newest_ && clock <= *newest_) return;
  Cut& cut = cuts_[clock];
  if (cut.writing) return;
  cut.error.clear();
  cut.shards.clear();
  cut.since = now;
}

std::optional<CutParts> CutBook::TakeWhole(const Needs& needs) {
  if (WritingAny()) return std::nullopt;
  for (auto cut = cuts_.rbegin(); cut != cuts_.rend(); ++cut) {
    std::optional<CutParts> parts = Whole(cut->first, cut->second, needs);
    if (!parts) continue;
    cut->second.writing = true;
    cut->second.named = parts->states;
    return parts;
  }
  return std::nullopt;
}

std::optional<CutParts> CutBook::Whole(uint64_t clock, const Cut& cut, const Needs& needs) const {
  if (!cut.error.empty() || cut.shards.size() != shards_) return std::nullopt;
  CutParts parts;
  parts.clock = clock;
  for (uint32_t rank = 0; states_ && rank < ranks_; ++rank) {
    std::optional<StateFile> state = StateOf(clock, cut, rank, needs);
    if (!state) return std::nullopt;
    if (!state->file.file().empty()) parts.states[rank] = *std::move(state);
  }
  for (const auto& [shard, file] : cut.shards) parts.shards.push_back(file);
  return parts;
}

std::optional<StateFile> CutBook::StateOf(uint64_t clock, const Cut& cut, uint32_t rank,
                                          const Needs& needs) const {
  if (const auto exact = cut.states.find(rank); exact != cut.states.end()) {
    return StateFile{clock, clock, exact->second};
  }
  const auto [need, left_at] = needs(clock, rank);
  const auto newest = newest_states_.find(rank);
  if (need == StateNeed::kIfAny) {
    return newest == newest_states_.end() ? StateFile{} : newest->second;
  }
  if (need == StateNeed::kAtLeaving && newest != newest_states_.end() &&
      newest->second.clock >= left_at) {
    return newest->second;
  }
  return std::nullopt;
}

void CutBook::Written(uint64_t clock, const absl::Status& status) {
  const auto written = cuts_.find(clock);
  if (written == cuts_.end()) return;
  if (!status.ok()) {
    written->second.writing = false;
    written->second.error = absl::StrCat("its manifest: ", Printable(status.message()));
    return;
  }
  for (auto& [rank, state] : written->second.named) {
    // A newer state, in another folder, may have come meanwhile, and must stay.
    StateFile& newest = newest_states_[rank];
    const bool same = newest.clock == state.clock && newest.file.file() == state.file.file();
    if (same) newest.folder = clock;
    state.folder = clock;
  }
  complete_states_ = std::move(written->second.named);
  newest_ = clock;
  cuts_.erase(cuts_.begin(), std::next(written));
}

void CutBook::GoBack() {
  cuts_.clear();
  // A state's clock does not show whether the state is from before the job went back, because
  // outside of sync mode a rank's clock can be ahead of a cut's clock or behind it. So every old
  // state gets clock 0.
  newest_states_ = complete_states_;
  for (auto& [rank, state] : newest_states_) state.clock = 0;
}

bool CutBook::WritingAny() const {
  return std::any_of(cuts_.begin(), cuts_.end(),
                     [](const auto& cut) { return cut.second.writing; });
}

std::set<uint64_t> CutBook::StateFolders() const {
  std::set<uint64_t> folders;
  for (const auto* states : {&newest_states_, &complete_states_}) {
    for (const auto& [rank, state] : *states) folders.insert(state.folder);
  }
  for (const auto& [clock, cut] : cuts_) {
    for (const auto& [rank, state] : cut.named) folders.insert(state.folder);
  }
  return folders;
}

std::vector<uint64_t> CutBook::Expire(Time now, Duration limit) {
  std::vector<uint64_t> expired;
  for (auto& [clock, cut] : cuts_) {
    if (cut.writing || !cut.error.empty() || !cut.since || now - *cut.since <= limit) continue;
    cut.error = "parts are missing";
    expired.push_back(clock);
  }
  return expired;
}

bool CutBook::Failed(uint64_t clock) const {
  const auto cut = cuts_.find(clock);
  return cut != cuts_.end() && !cut->second.error.empty();
}

bool CutBook::Writing(uint64_t clock) const {
  const auto cut = cuts_.find(clock);
  return cut != cuts_.end() && cut->second.writing;
}

bool CutBook::HasAllShards(uint64_t clock) const {
  const auto cut = cuts_.find(clock);
  return cut != cuts_.end() && cut->second.shards.size() == shards_;
}

bool CutBook::HasState(uint32_t rank, uint64_t clock) const {
  if (newest_ && clock <= *newest_) return true;
  const auto newest = newest_states_.find(rank);
  return newest != newest_states_.end() && newest->second.clock >= clock;
}

CutBook::Missing CutBook::MissingOf(uint64_t clock, const Needs& needs) const {
  static const Cut kEmpty;
  const auto found = cuts_.find(clock);
  const Cut& cut = found == cuts_.end() ? kEmpty : found->second;
  Missing missing;
  for (uint32_t shard = 0; shard < shards_; ++shard) {
    if (cut.shards.count(shard) == 0) missing.shards.push_back(shard);
  }
  for (uint32_t rank = 0; states_ && rank < ranks_; ++rank) {
    if (!StateOf(clock, cut, rank, needs)) missing.ranks.push_back(rank);
  }
  return missing;
}

}  // namespace leeway
