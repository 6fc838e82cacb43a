// Loads the batches on which one worker trains.
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
// With iid, all ranks share one permutation of all examples for each epoch. Batch p of rank r of W
// workers is at the places [(p W + r) B, (p W + r + 1) B) of that permutation. So W workers with
// batches of B examples together see the same batches as one worker with batches of W B examples.
// With other partitions, batch p is at the places [p B, (p + 1) B) of a permutation of the rank's
// own share. The last batch of an epoch may be smaller, and a batch beyond the data is empty.
//
// Thread-safe: constant, except for the cached permutation, which has its own lock.
class TrainingData {
 public:
  // Reads the job's training source without the held-out examples. With by_file it reads only the
  // files i with i mod W = rank. `rank` must be below workers.count. Errors name the file and the
  // place.
  static absl::StatusOr<std::unique_ptr<TrainingData>> Open(const v1::TrainingJob& job,
                                                            const std::string& data_dir,
                                                            uint32_t rank);

  // Returns, for each rank, the number of batches in a pass over its data. `first` is the data of
  // rank 0.
  static absl::StatusOr<std::vector<uint64_t>> StepsOfRanks(const v1::TrainingJob& job,
                                                            const std::string& data_dir,
                                                            const TrainingData& first);

  const ImageShape& shape() const { return dataset_->shape(); }
  // Returns Dataset::classes() for the files that this rank reads.
  uint32_t classes() const { return dataset_->classes(); }
  // Returns the number of examples of this rank in an epoch. With iid all ranks share all examples,
  // so it is the number of all examples; otherwise it is the size of the rank's own share.
  uint64_t examples() const { return order_.size(); }
  // Returns the number of batches of this rank in a pass over the data, or 0 if the rank has no
  // batches.
  uint64_t steps_per_epoch() const;
  const Dataset& dataset() const { return *dataset_; }
  // Returns true if another thread should load batches ahead: loading takes long if pictures are
  // decoded or augmented. Other batches are copied out of memory in microseconds, and waking a
  // thread takes as long. If `on_device` is true, batches are always loaded ahead, because this
  // thread must keep a device busy.
  bool worth_prefetching(bool on_device) const {
    return on_device || dataset_->decodes() || !augmenter_.none();
  }

  // Loads the batch of step `step` (from 0) of this rank. Every epoch has `steps_per_epoch` steps,
  // at least as many as this rank's own data needs. If `steps_per_epoch` is 0, the batch is empty.
  // If this call is the first to read a file, it may return the errors of reading it.
  absl::Status Load(uint64_t step, uint64_t steps_per_epoch, Batch& batch) const;

  // Announces a Load of this step, or a LoadBatch of this number. Files that are not on this
  // machine yet are fetched in the meantime.
  void WillLoad(uint64_t step, uint64_t steps_per_epoch) const;
  void WillLoadBatch(uint64_t number) const;

  // For leased data, where all ranks share one permutation. batches_per_epoch returns the number of
  // batches in a pass over the permutation. LoadBatch loads batch `number`; batches are numbered
  // through all epochs, in the same way on every rank.
  uint64_t batches_per_epoch() const;
  absl::Status LoadBatch(uint64_t number, Batch& batch) const;
  absl::Status LoadNothing(Batch& batch) const;

 private:
  // Says which batches belong to a rank. An epoch's order consists of blocks of batch_size places.
  // The rank's batch p is the block with the number offset + p * stride.
  struct Deal {
    uint64_t batch_size;
    uint64_t stride;
    uint64_t offset;
  };

  TrainingData(const v1::TrainingJob& job, uint32_t rank, std::unique_ptr<Dataset> dataset,
               Augmenter augmenter, EpochOrder::Rows rows);
  // The start of a batch in an epoch's order.
  struct Place {
    uint64_t epoch;
    uint64_t first;
  };
  // Returns nothing if the batch of the step is empty.
  std::optional<Place> PlaceOfStep(uint64_t step, uint64_t steps_per_epoch) const;
  std::optional<Place> PlaceOfBatch(uint64_t number) const;
  void WillNeed(const Place& place) const;
  // Copies the batch that begins at `place` of an epoch's order. `keys` identify the batch's random
  // draws.
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
