// A worker's training step: loads the next batch, and runs the forward and backward pass.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "client/session/leased_batches.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"
#include "worker/batch_prefetcher.h"
#include "worker/data/sources/training_data.h"
#include "worker/emulation.h"
#include "worker/model/model.h"
#include "worker/training/step_runner.h"

namespace leeway {

// Not thread-safe. The model and the data must outlive this object.
class LocalSteps : public StepRunner {
 public:
  // `leases` decides which batches this worker gets. If it is null, the batches are a function of
  // the step and the rank.
  LocalSteps(const v1::TrainingJob& job, uint32_t rank, const v1::JobLength& length,
             const TrainingData& data, LeasedBatches* leases, Model& model,
             std::function<void(Duration)> sleep);

  // Runs a step (StepRunner). If slowness is emulated, elements become final only at the end of the
  // step.
  absl::StatusOr<StepResult> Run(uint64_t step, const StepVectors& vectors,
                                 TrainObserver& observer) override;

 private:
  // Loads the batch of the step. Returns false if neither this step nor the later steps of its
  // clock have a batch.
  absl::StatusOr<bool> Load(uint64_t step);
  // Gets the batch of this key, which is a step or the number of a leased batch. In the meantime,
  // other threads start to load the batches of `later`.
  absl::Status Fetch(uint64_t key, std::span<const uint64_t> later);
  absl::Status LoadKey(uint64_t key, Batch& batch) const;
  void Announce(uint64_t key) const;

  const uint64_t seed_;
  const uint32_t rank_;
  // The number of steps in one pass over the data. In async mode it is this worker's own number:
  // the worker begins the next pass when its own data ends, so that no batch is empty. An empty
  // batch would be wrong, because each exchange of the worker counts towards the exchanges of the
  // job.
  const uint64_t steps_per_epoch_;
  const TrainingData& data_;
  LeasedBatches* const leases_;
  const v1::JobLength length_;
  // The number of steps of the job. 0 if the number is not known.
  const uint64_t steps_;
  const uint32_t prefetch_;
  const Duration longest_wait_;
  Model& model_;
  const Emulation emulation_;
  const std::function<void(Duration)> sleep_;
  Batch batch_;
  // Loads batches ahead. Null if this thread loads batches itself. The prefetcher's threads use the
  // members above.
  std::unique_ptr<BatchPrefetcher> prefetcher_;
};

}  // namespace leeway
