#include "worker/data/sources/training_data.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "common/counted.h"
#include "common/job_key.h"
#include "common/plugins/label_loss.h"
#include "common/status.h"
#include "worker/data/examples.h"
#include "worker/data/partition.h"
#include "worker/data/sources/source.h"

namespace leeway {
namespace {

// Returns true if all ranks share one permutation, and train on its batches in turn.
bool SharesOneOrder(const v1::TrainingJob& job) {
  const v1::Partition::TypeCase type = job.data().partition().type_case();
  return type == v1::Partition::kIid || type == v1::Partition::TYPE_NOT_SET;
}

absl::Status CheckJob(const v1::TrainingJob& job, uint32_t rank) {
  const uint32_t workers = job.workers().count();
  if (rank >= workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " does not exist: the job has ", Counted(workers, "worker")));
  }
  if (job.data().batch_size() == 0) {
    return AtKey(absl::InvalidArgumentError("is 0"), "data.batch_size");
  }
  const v1::Partition& partition = job.data().partition();
  const size_t files = FileCount(job.data().train());
  if (partition.has_by_file() && files <= rank) {
    return AtKey(absl::InvalidArgumentError(
                     absl::StrCat("by_file leaves rank ", rank, " without data: data.train has ",
                                  Counted(files, "file"), " for ", Counted(workers, "worker"))),
                 "data.partition");
  }
  const bool by_class = partition.has_stratified() || partition.has_label_skew();
  if (by_class && LabelLoss(job.model()) == v1::LOSS_SQUARED) {
    return AtKey(absl::InvalidArgumentError("stratified and label_skew need classes, but the "
                                            "loss of this job does not use classes"),
                 "data.partition");
  }
  if (by_class && job.data().train().has_text()) {
    return AtKey(absl::InvalidArgumentError("stratified and label_skew need one class for each "
                                            "example; for a text, use iid or by_file"),
                 "data.partition");
  }
  return absl::OkStatus();
}

EpochOrder::Rows OwnRows(const v1::TrainingJob& job, const Dataset& dataset, uint32_t rank) {
  const v1::Partition& partition = job.data().partition();
  const uint64_t seed = job.metadata().seed();
  const uint32_t workers = job.workers().count();
  if (partition.has_stratified()) {
    return std::move(DealStratified(dataset.labels(), seed, workers)[rank]);
  }
  if (partition.has_label_skew()) {
    const double alpha = partition.label_skew().alpha();
    return std::move(DealLabelSkewed(dataset.labels(), alpha, seed, workers)[rank]);
  }
  EpochOrder::Rows rows(dataset.size());
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// Returns how many of the numbers offset, offset + stride, and so on, are below `batches`.
uint64_t StepsOf(uint64_t batches, uint64_t offset, uint64_t stride) {
  if (batches <= offset) return 0;
  return (batches - offset + stride - 1) / stride;
}

}  // namespace

TrainingData::TrainingData(const v1::TrainingJob& job, uint32_t rank,
                           std::unique_ptr<Dataset> dataset, Augmenter augmenter,
                           EpochOrder::Rows rows)
    : seed_(job.metadata().seed()),
      rank_(rank),
      dataset_(std::move(dataset)),
      augmenter_(augmenter),
      mixer_(job.data().augment()),
      order_(seed_, SharesOneOrder(job) ? std::nullopt : std::optional(rank), std::move(rows)),
      deal_(SharesOneOrder(job) ? Deal{job.data().batch_size(), job.workers().count(), rank}
                                : Deal{job.data().batch_size(), 1, 0}) {}

absl::StatusOr<std::unique_ptr<TrainingData>> TrainingData::Open(const v1::TrainingJob& job,
                                                                 const std::string& data_dir,
                                                                 uint32_t rank) {
  RETURN_IF_ERROR(CheckJob(job, rank));
  const v1::Data& data = job.data();
  const bool by_file = data.partition().has_by_file();
  const uint32_t workers = job.workers().count();
  const bool holds_out = data.has_holdout() && !data.has_test();
  ASSIGN_OR_RETURN(
      std::unique_ptr<Dataset> dataset,
      ReadSource(job, data.train(), data_dir, holds_out ? Part::kWithoutHoldout : Part::kAll,
                 [&](size_t i) { return !by_file || i % workers == rank; }));
  ASSIGN_OR_RETURN(const Augmenter augmenter, Augmenter::Create(data.augment(), dataset->shape()));
  EpochOrder::Rows rows = OwnRows(job, *dataset, rank);
  return std::unique_ptr<TrainingData>(
      new TrainingData(job, rank, std::move(dataset), augmenter, std::move(rows)));
}

absl::StatusOr<std::vector<uint64_t>> TrainingData::StepsOfRanks(const v1::TrainingJob& job,
                                                                 const std::string& data_dir,
                                                                 const TrainingData& first) {
  const uint64_t batch = first.deal_.batch_size;
  std::vector<uint64_t> steps;
  for (uint32_t rank = 0; rank < job.workers().count(); ++rank) {
    if (SharesOneOrder(job)) {
      steps.push_back(StepsOf(first.batches_per_epoch(), rank, first.deal_.stride));
    } else if (job.data().partition().has_by_file()) {
      ASSIGN_OR_RETURN(const auto data, Open(job, data_dir, rank));
      RETURN_IF_ERROR(
          AtKey(Annotate(CheckSameColumns(data->dataset().columns(), first.dataset().columns()),
                         absl::StrCat("the data of rank ", rank)),
                "data.train"));
      steps.push_back(data->steps_per_epoch());
    } else {
      const uint64_t examples = OwnRows(job, *first.dataset_, rank).size();
      steps.push_back((examples + batch - 1) / batch);
    }
  }
  return steps;
}

uint64_t TrainingData::batches_per_epoch() const {
  return (order_.size() + deal_.batch_size - 1) / deal_.batch_size;
}

uint64_t TrainingData::steps_per_epoch() const {
  return StepsOf(batches_per_epoch(), deal_.offset, deal_.stride);
}

std::optional<TrainingData::Place> TrainingData::PlaceOfStep(uint64_t step,
                                                             uint64_t steps_per_epoch) const {
  const uint64_t position = steps_per_epoch == 0 ? 0 : step % steps_per_epoch;
  if (steps_per_epoch == 0 || position >= this->steps_per_epoch()) return std::nullopt;
  return Place{step / steps_per_epoch, (deal_.offset + position * deal_.stride) * deal_.batch_size};
}

std::optional<TrainingData::Place> TrainingData::PlaceOfBatch(uint64_t number) const {
  const uint64_t batches = batches_per_epoch();
  if (batches == 0) return std::nullopt;
  return Place{number / batches, number % batches * deal_.batch_size};
}

absl::Status TrainingData::CopyBatch(const Place& place, std::initializer_list<uint64_t> keys,
                                     Batch& batch) const {
  const auto order = order_.Of(place.epoch);
  const uint64_t count = std::min<uint64_t>(deal_.batch_size, order->size() - place.first);
  RETURN_IF_ERROR(dataset_->CopyRows(std::span(*order).subspan(place.first, count), augmenter_,
                                     RandomStream(seed_, RandomPurpose::kAugment, keys), batch));
  mixer_.Apply(RandomStream(seed_, RandomPurpose::kMix, keys), batch);
  return absl::OkStatus();
}

absl::Status TrainingData::Load(uint64_t step, uint64_t steps_per_epoch, Batch& batch) const {
  const auto place = PlaceOfStep(step, steps_per_epoch);
  return place ? CopyBatch(*place, {step, rank_}, batch) : LoadNothing(batch);
}

absl::Status TrainingData::LoadBatch(uint64_t number, Batch& batch) const {
  const auto place = PlaceOfBatch(number);
  return place ? CopyBatch(*place, {number}, batch) : LoadNothing(batch);
}

void TrainingData::WillNeed(const Place& place) const {
  if (!dataset_->decodes()) return;
  const auto order = order_.Of(place.epoch);
  const uint64_t count = std::min<uint64_t>(deal_.batch_size, order->size() - place.first);
  dataset_->WillNeed(std::span(*order).subspan(place.first, count));
}

void TrainingData::WillLoad(uint64_t step, uint64_t steps_per_epoch) const {
  if (const auto place = PlaceOfStep(step, steps_per_epoch)) WillNeed(*place);
}

void TrainingData::WillLoadBatch(uint64_t number) const {
  if (const auto place = PlaceOfBatch(number)) WillNeed(*place);
}

absl::Status TrainingData::LoadNothing(Batch& batch) const {
  return dataset_->CopyRows({}, augmenter_, RandomStream(seed_, RandomPurpose::kAugment, {}),
                            batch);
}

}  // namespace leeway
