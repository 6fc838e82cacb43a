#include "server/coordinator/core/data_leases.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/status.h"
#include "config/length.h"
#include "server/coordinator/core/phrases.h"

namespace leeway {

absl::Status DataLeases::Open(const v1::JobLength& length, uint64_t cut) {
  if (!facts_.leased()) return absl::OkStatus();
  if (batches_per_epoch_ == 0) {
    return absl::FailedPreconditionError(
        "no worker has said how many batches make a pass over the leased data");
  }
  if (facts_.options().resumed && !facts_.options().resumed->manifest.has_data()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the checkpoint ", facts_.options().resumed->folder,
        " does not say which batches it covers, because its data was not leased: resume with "
        "data.assignment: static, or begin a new run"));
  }
  if (facts_.options().resumed) newest_ = facts_.options().resumed->manifest.data();
  book_.emplace(LeaseBook::Rules{
      .batches_per_epoch = batches_per_epoch_,
      .batches = JobBatches(facts_.job(), length, batches_per_epoch_).value_or(LeaseBook::kEndless),
      // Two clocks: one whose exchange is not complete, and the next one.
      .under_way = 2 * length.steps_per_clock()});
  return Restore(cut);
}

absl::Status DataLeases::Restore(uint64_t cut) {
  if (!book_) return absl::OkStatus();
  if (newest_) {
    return Annotate(book_->Restore(*newest_),
                    absl::StrCat("the checkpoint at clock ", cut, ", MANIFEST.json, data"));
  }
  book_->Reset();
  return absl::OkStatus();
}

absl::Status DataLeases::Check(const v1::RegisterWorkerRequest& request,
                               const std::string& who) const {
  if (!facts_.leased()) return absl::OkStatus();
  const uint64_t batches = request.batches_per_epoch();
  if (batches == 0 || batches > LeaseBook::kBatchMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        who, " reports ", Counted(batches, "batch"),
        " in a pass over the leased data; the number must be from 1 to ", LeaseBook::kBatchMax));
  }
  if (batches_per_epoch_ == 0 || batches == batches_per_epoch_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(who, " has ", Counted(batches, "batch"),
                   " in a pass over the data, but the other workers have ", batches_per_epoch_,
                   ": leased data must be the same everywhere"));
}

void DataLeases::Take(const v1::RegisterWorkerRequest& request) {
  if (facts_.leased()) batches_per_epoch_ = request.batches_per_epoch();
}

v1::LeaseDataReply DataLeases::Lease(const v1::LeaseDataRequest& request, uint32_t sharers,
                                     bool cuts) {
  const uint32_t rank = request.rank();
  TakeDone(request, cuts);
  for (const v1::DataRange& range : request.returned()) {
    book_->Return(rank, {range.first(), range.first() + range.count()});
  }
  book_->Lease(rank, request.want(), sharers);
  v1::LeaseDataReply reply;
  for (const Interval& run : book_->Held(rank)) {
    v1::DataRange* range = reply.add_held();
    range->set_first(run.first);
    range->set_count(run.size());
  }
  reply.set_over(book_->over());
  return reply;
}

void DataLeases::TakeDone(const v1::LeaseDataRequest& request, bool cuts) {
  const uint64_t whole = book_->whole_epochs();
  for (const v1::DoneRange& range : request.done()) {
    book_->Done(request.rank(), {range.first(), range.first() + range.count()}, range.clock());
  }
  // Without cuts the job can only go back to its beginning, so the book need not keep the reports.
  if (!cuts) book_->Forget({});
  if (book_->whole_epochs() == whole) return;
  commands_.Emit(
      {.name = "epoch_done",
       .message = absl::StrCat("every batch of epochs below ", book_->whole_epochs(),
                               " has been trained on; ", book_->taken_back(),
                               " batches were taken back from workers that were lost or left")});
}

void DataLeases::TakeBack(uint32_t rank) {
  if (book_) book_->TakeBack(rank);
}

void DataLeases::AddTo(uint64_t clock, const std::vector<v1::SavedShard>& shards,
                       v1::CheckpointManifest& manifest) {
  if (!book_) return;
  DataCut cut;
  for (const v1::SavedShard& shard : shards) {
    for (int i = 0; i < shard.clocks_size(); ++i) {
      if (static_cast<size_t>(i) == cut.clocks.size()) cut.clocks.push_back(shard.clocks(i));
      cut.clocks[i] = std::min(cut.clocks[i], shard.clocks(i));
    }
  }
  cut.progress = book_->At(cut.clocks);
  *manifest.mutable_data() = cut.progress;
  cuts_[clock] = std::move(cut);
}

void DataLeases::Written(uint64_t clock, bool durable) {
  const auto cut = cuts_.find(clock);
  if (cut == cuts_.end()) return;
  if (durable) {
    newest_ = cut->second.progress;
    book_->Forget(cut->second.clocks);
  }
  cuts_.erase(cut);
}

void DataLeases::Fill(v1::JobStatus& status) const {
  if (!book_) return;
  v1::DataStatus& data = *status.mutable_data();
  data.set_batches_per_epoch(batches_per_epoch_);
  data.set_done(book_->done());
  data.set_leased(book_->leased());
  data.set_taken_back(book_->taken_back());
}

std::string DataLeases::LastBatchesMessage() const {
  if (!book_ || book_->over() || !book_->all_leased()) return "";
  std::vector<uint32_t> holders;
  for (uint32_t rank = 0; rank < facts_.job().workers().count(); ++rank) {
    if (!book_->Held(rank).empty()) holders.push_back(rank);
  }
  return absl::StrCat("the last ", Counted(book_->leased(), "batch"), " are with ",
                      ListOf("worker", holders));
}

}  // namespace leeway
