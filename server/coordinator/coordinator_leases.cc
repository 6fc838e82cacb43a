// Leased data: which batches are whose (lease_book.h), where data.assignment asks for it.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/coordinator/coordinator_core.h"
#include "server/coordinator/phrases.h"

namespace leeway {
namespace {

// Far above any data set; keeps sums of batches from overflowing.
constexpr uint64_t kBatchMax = uint64_t{1} << 60;

// The job's batches, where its workers together make so many steps and no one of them his own
// number.
uint64_t BatchesOf(const v1::TrainingJob& job, const v1::JobLength& length,
                   uint64_t batches_per_epoch) {
  if (length.total_clocks() == 0) return LeaseBook::kEndless;
  if (job.stop().has_clocks()) return length.total_clocks() * length.steps_per_clock();
  const double batches = job.stop().epochs() * static_cast<double>(batches_per_epoch);
  if (!(batches < static_cast<double>(kBatchMax))) return kBatchMax;
  const auto whole = static_cast<uint64_t>(batches);
  return whole + (static_cast<double>(whole) < batches ? 1 : 0);
}

}  // namespace

void CoordinatorCore::OpenLeases() {
  if (options_.job.data().assignment() != v1::ASSIGNMENT_LEASED) return;
  leases_.emplace(LeaseBook::Rules{.batches_per_epoch = batches_per_epoch_,
                                   .batches = BatchesOf(options_.job, *length_, batches_per_epoch_),
                                   .workers = ranks_.size()});
  if (options_.resumed) newest_data_ = options_.resumed->manifest.data();
  leases_->Restore(newest_data_);
}

absl::Status CoordinatorCore::CheckBatches(const v1::RegisterWorkerRequest& request,
                                           const std::string& who) const {
  if (options_.job.data().assignment() != v1::ASSIGNMENT_LEASED) return absl::OkStatus();
  const uint64_t batches = request.batches_per_epoch();
  if (batches == 0 || batches > kBatchMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        who, " has ", batches, " batches in a pass over the data, which is leased to all workers"));
  }
  if (batches_per_epoch_ == 0 || batches == batches_per_epoch_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(who, " has ", batches, " batches in a pass over the data, the others have ",
                   batches_per_epoch_, ": leased data must be the same everywhere"));
}

absl::StatusOr<v1::LeaseDataReply> CoordinatorCore::LeaseData(const v1::LeaseDataRequest& request,
                                                              Time now) {
  const uint32_t rank = request.rank();
  RETURN_IF_ERROR(
      CheckSender({request.job(), request.generation(), rank, request.incarnation(), 0}));
  if (!leases_ || ranks_[rank].left()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "worker ", rank, " asks for batches", leases_ ? ", but has left" : " of data not leased"));
  }
  SignOfLife(rank, now);
  TakeDone(request);
  leases_->Lease(rank, request.want());
  v1::LeaseDataReply reply;
  for (const Interval& run : leases_->Held(rank)) {
    v1::DataRange* range = reply.add_held();
    range->set_first(run.first);
    range->set_count(run.size());
  }
  reply.set_over(leases_->over());
  Advance(now);
  return reply;
}

void CoordinatorCore::TakeDone(const v1::LeaseDataRequest& request) {
  const uint64_t whole = leases_->whole_epochs();
  for (const v1::DoneRange& range : request.done()) {
    if (range.first() > kBatchMax || range.count() > kBatchMax) continue;
    leases_->Done(request.rank(), {range.first(), range.first() + range.count()}, range.clock());
  }
  // Without cuts the job only ever goes back to its beginning.
  if (cut_every_ == 0) leases_->Forget({});
  if (leases_->whole_epochs() == whole) return;
  Emit({.name = "epoch_done",
        .message = absl::StrCat("every batch of epochs below ", leases_->whole_epochs(),
                                " has been trained on; ", leases_->taken_back(),
                                " batches were taken back from workers that were lost or left")});
}

void CoordinatorCore::TakeBackLeases(uint32_t rank) {
  if (leases_) leases_->TakeBack(rank);
}

void CoordinatorCore::AddData(uint64_t clock, const std::vector<v1::SavedShard>& shards,
                              v1::CheckpointManifest& manifest) {
  if (!leases_) return;
  DataCut cut;
  for (const v1::SavedShard& shard : shards) {
    for (int i = 0; i < shard.clocks_size(); ++i) {
      if (static_cast<size_t>(i) == cut.clocks.size()) cut.clocks.push_back(shard.clocks(i));
      cut.clocks[i] = std::min(cut.clocks[i], shard.clocks(i));
    }
  }
  cut.progress = leases_->At(cut.clocks);
  *manifest.mutable_data() = cut.progress;
  data_cuts_[clock] = std::move(cut);
}

void CoordinatorCore::DataWritten(uint64_t clock, bool durable) {
  const auto cut = data_cuts_.find(clock);
  if (cut == data_cuts_.end()) return;
  if (durable) {
    newest_data_ = cut->second.progress;
    leases_->Forget(cut->second.clocks);
  }
  data_cuts_.erase(cut);
}

void CoordinatorCore::FillData(v1::JobStatus& status) const {
  if (!leases_) return;
  v1::DataStatus& data = *status.mutable_data();
  data.set_batches_per_epoch(batches_per_epoch_);
  data.set_done(leases_->done());
  data.set_leased(leases_->leased());
  data.set_taken_back(leases_->taken_back());
}

std::string CoordinatorCore::LastBatchesMessage() const {
  if (!leases_ || leases_->over() || !leases_->all_leased()) return "";
  std::vector<uint32_t> holders;
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!leases_->Held(rank).empty()) holders.push_back(rank);
  }
  return absl::StrCat("the last ", leases_->leased(), " batches are with ",
                      ListOf("worker", holders));
}

}  // namespace leeway
