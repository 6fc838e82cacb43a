// What one worker trains on, batch by batch.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/augmenter.h"
#include "worker/data/batch.h"
#include "worker/data/dataset.h"
#include "worker/data/epoch_order.h"
#include "worker/data/mixer.h"
#include "worker/data/shape.h"

namespace leeway {

// The batches of a rank are a pure function of (the job's data and seed, epoch, step, rank).
//
// iid: position p of an epoch gives rank r of W the places [(p W + r) B, (p W + r + 1) B) of one
// permutation of all examples, so W workers of batch B see together what one of batch W B sees.
// Other partitions: places [p B, (p + 1) B) of a permutation of the rank's own share. The last
// batch of an epoch may be smaller, and one beyond the data is empty.
//
// Thread-safe: constant but for the cached permutation, which has its own lock.
class TrainingData {
 public:
  // Reads the job's training source without the held-out examples; with by_file only the files i
  // with i mod W = rank. `rank` < workers.count. Errors name file and place.
  static absl::StatusOr<std::unique_ptr<TrainingData>> Open(const v1::TrainingJob& job,
                                                            const std::string& data_dir,
                                                            uint32_t rank);

  // The batches of each rank in a pass over the data, by rank; `first` is rank 0's data.
  static absl::StatusOr<std::vector<uint64_t>> StepsOfRanks(const v1::TrainingJob& job,
                                                            const std::string& data_dir,
                                                            const TrainingData& first);

  const ImageShape& shape() const { return dataset_->shape(); }
  // As Dataset::classes: what was seen in the files that this rank reads.
  uint32_t classes() const { return dataset_->classes(); }
  // That this rank draws from in an epoch: with iid all, shared with the other ranks; else its
  // share.
  uint64_t examples() const { return order_.size(); }
  // Batches of this rank in a pass over the data; 0 if it has none.
  uint64_t steps_per_epoch() const;
  const Dataset& dataset() const { return *dataset_; }
  // Whether a batch takes so long to load that it is better loaded ahead, by another thread:
  // pictures are decoded or augmented. Else it is copied out of memory in microseconds, and to wake
  // a thread takes as long; but `on_device`, where this thread has a device to keep busy meanwhile.
  bool worth_prefetching(bool on_device) const {
    return on_device || dataset_->decodes() || !augmenter_.none();
  }

  // The batch of step `step` (from 0) of this rank, where every epoch has `steps_per_epoch` steps:
  // at least its own number. 0: an empty batch. Errors are those of files that are read only now.
  absl::Status Load(uint64_t step, uint64_t steps_per_epoch, Batch& batch) const;

  // Says that Load of this step, or LoadBatch of this number, will come: what is not on this
  // machine yet is fetched meanwhile.
  void WillLoad(uint64_t step, uint64_t steps_per_epoch) const;
  void WillLoadBatch(uint64_t number) const;

  // Where data is leased, and all ranks share one permutation: batches in a pass over it, and batch
  // `number` of the endless row of epochs, the same on every rank.
  uint64_t batches_per_epoch() const;
  absl::Status LoadBatch(uint64_t number, Batch& batch) const;
  // An empty one.
  absl::Status LoadNothing(Batch& batch) const;

 private:
  // Batch p of an epoch takes block offset + p * stride of batch_size places.
  struct Deal {
    uint64_t batch_size;
    uint64_t stride;
    uint64_t offset;
  };

  TrainingData(const v1::TrainingJob& job, uint32_t rank, std::unique_ptr<Dataset> dataset,
               Augmenter augmenter, EpochOrder::Rows rows);
  // The rows of a batch that begins at a place of an epoch's order.
  struct Place {
    uint64_t epoch;
    uint64_t first;
  };
  // Nothing: the batch is empty.
  std::optional<Place> PlaceOfStep(uint64_t step, uint64_t steps_per_epoch) const;
  std::optional<Place> PlaceOfBatch(uint64_t number) const;
  void WillNeed(const Place& place) const;
  // A batch that begins at a place of an epoch's order; `keys` name its draws.
  absl::Status CopyBatch(const Place& place, std::initializer_list<uint64_t> keys,
                         Batch& batch) const;

  const uint64_t seed_;
  const uint32_t rank_;
  const std::unique_ptr<const Dataset> dataset_;
  const Augmenter augmenter_;
  const Mixer mixer_;
  const EpochOrder order_;
  const Deal deal_;
};

}  // namespace leeway
