// A worker's training step: the next batch, forward and backward.
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
#include "worker/exchange/step_runner.h"
#include "worker/model/model.h"

namespace leeway {

// Not thread-safe. The model and the data outlive it.
class LocalSteps : public StepRunner {
 public:
  // `leases`: which batches; null: a function of the step and the rank.
  LocalSteps(const v1::TrainingJob& job, uint32_t rank, const v1::JobLength& length,
             const TrainingData& data, LeasedBatches* leases, Model& model,
             std::function<void(Duration)> sleep);

  // Where slowness is emulated, elements become final at the end of the step.
  absl::StatusOr<StepResult> Run(uint64_t step, const StepVectors& vectors,
                                 TrainObserver& observer) override;

 private:
  // False: there is no batch, nor one for the other steps of its clock.
  absl::StatusOr<bool> Load(uint64_t step);
  // The batch of this key, which is a step, or the number of a leased batch. Those of `later` are
  // loaded meanwhile.
  absl::Status Fetch(uint64_t key, std::span<const uint64_t> later);
  absl::Status LoadKey(uint64_t key, Batch& batch) const;
  void Announce(uint64_t key) const;

  const uint64_t seed_;
  const uint32_t rank_;
  // Of a pass over the data. In async mode this worker's own: it begins the next one when its data
  // ends, and has no empty batches, for each of its exchanges counts towards the job's.
  const uint64_t steps_per_epoch_;
  const TrainingData& data_;
  LeasedBatches* const leases_;
  const v1::JobLength length_;
  // Steps of the job; 0: not known.
  const uint64_t steps_;
  const uint32_t prefetch_;
  const Duration longest_wait_;
  Model& model_;
  const Emulation emulation_;
  const std::function<void(Duration)> sleep_;
  Batch batch_;
  // Null if this thread loads batches itself. Its threads use the members above.
  std::unique_ptr<BatchPrefetcher> prefetcher_;
};

}  // namespace leeway
