// Leased data: which batches are whose (lease_book.h), where data.assignment asks for it.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "config/length.h"
#include "server/coordinator/coordinator_core.h"
#include "server/coordinator/phrases.h"

namespace leeway {

absl::Status CoordinatorCore::OpenLeases() {
  if (options_.job.data().assignment() != v1::ASSIGNMENT_LEASED) return absl::OkStatus();
  if (batches_per_epoch_ == 0) {
    return absl::FailedPreconditionError(
        "no worker has said how many batches make a pass over the data, which is leased to all");
  }
  if (options_.resumed && !options_.resumed->manifest.has_data()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the checkpoint ", options_.resumed->folder,
                     " does not say which batches it has, for its data was not leased: resume with "
                     "data.assignment: static, or begin a new run"));
  }
  if (options_.resumed) newest_data_ = options_.resumed->manifest.data();
  leases_.emplace(LeaseBook::Rules{
      .batches_per_epoch = batches_per_epoch_,
      .batches =
          JobBatches(options_.job, *length_, batches_per_epoch_).value_or(LeaseBook::kEndless),
      // One whose exchange is not complete, and the next.
      .under_way = 2 * length_->steps_per_clock()});
  return RestoreLeases();
}

absl::Status CoordinatorCore::RestoreLeases() {
  if (!leases_) return absl::OkStatus();
  if (newest_data_) {
    return Annotate(leases_->Restore(*newest_data_),
                    absl::StrCat("the checkpoint at clock ", cuts_.newest().value_or(0),
                                 ", MANIFEST.json, data"));
  }
  leases_->Reset();
  return absl::OkStatus();
}

absl::Status CoordinatorCore::CheckBatches(const v1::RegisterWorkerRequest& request,
                                           const std::string& who) const {
  if (options_.job.data().assignment() != v1::ASSIGNMENT_LEASED) return absl::OkStatus();
  const uint64_t batches = request.batches_per_epoch();
  if (batches == 0 || batches > LeaseBook::kBatchMax) {
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
  leases_->Lease(rank, request.want(), static_cast<uint32_t>(ranks_.Count(RankState::kRunning)));
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
    const bool sane =
        range.first() <= LeaseBook::kBatchMax && range.count() <= LeaseBook::kBatchMax;
    if (!sane) continue;
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
