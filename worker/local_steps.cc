#include "worker/local_steps.h"

#include <chrono>
#include <utility>

#include "common/status.h"

namespace leeway {

LocalSteps::LocalSteps(const v1::TrainingJob& job, uint32_t rank, const v1::JobLength& length,
                       const TrainingData& data, Model& model, std::function<void(Duration)> sleep)
    : seed_(job.metadata().seed()),
      rank_(rank),
      steps_per_epoch_(length.steps_per_epoch()),
      data_(data),
      model_(model),
      emulation_(job, rank),
      sleep_(std::move(sleep)) {}

absl::StatusOr<StepResult> LocalSteps::Run(uint64_t step, std::span<const float> weights,
                                           std::span<float> contribution) {
  const Time began = std::chrono::steady_clock::now();
  data_.Load(step, steps_per_epoch_, batch_);
  const Time loaded = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const double loss_sum,
                   model_.Train(batch_, weights, {seed_, step, rank_}, contribution));
  const Duration took = std::chrono::steady_clock::now() - began;
  const Duration pause = emulation_.Pause(step, took);
  if (pause > Duration::zero()) sleep_(pause);
  StepResult result;
  result.loss_sum = loss_sum;
  result.examples = batch_.size;
  result.data_seconds = Seconds(loaded - began);
  result.compute_seconds = Seconds(took + pause) - result.data_seconds;
  return result;
}

}  // namespace leeway
