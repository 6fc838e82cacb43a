#include "worker/local_steps.h"

#include <chrono>
#include <utility>

#include "common/status.h"

namespace leeway {
namespace {

Time Now() { return std::chrono::steady_clock::now(); }

// Tells the observer, and what of the batch's time was the model's own.
class TimedObserver : public TrainObserver {
 public:
  // `hold`: not that elements are final.
  TimedObserver(TrainObserver& observer, bool hold)
      : observer_(observer), hold_(hold), resumed_(Now()) {}

  absl::Status BeforeForward(std::span<const ElementRange> elements) override {
    forward_ += Now() - resumed_;
    const absl::Status status = observer_.BeforeForward(elements);
    resumed_ = Now();
    return status;
  }
  absl::Status AfterForward(double loss_sum, uint64_t examples) override {
    forward_ += Now() - resumed_;
    const absl::Status status = observer_.AfterForward(loss_sum, examples);
    resumed_ = Now();
    return status;
  }
  absl::Status OnFinal(std::span<const ElementRange> elements) override {
    return hold_ ? absl::OkStatus() : observer_.OnFinal(elements);
  }

  Duration forward() const { return forward_; }
  // Since the forward pass; with what it took to check and send what was final.
  Duration backward() const { return Now() - resumed_; }

 private:
  TrainObserver& observer_;
  const bool hold_;
  Time resumed_;
  Duration forward_{};
};

}  // namespace

LocalSteps::LocalSteps(const v1::TrainingJob& job, uint32_t rank, const v1::JobLength& length,
                       const TrainingData& data, BatchSource* source, Model& model,
                       std::function<void(Duration)> sleep)
    : seed_(job.metadata().seed()),
      rank_(rank),
      steps_per_epoch_(length.total_clocks() > 0 ? data.steps_per_epoch()
                                                 : length.steps_per_epoch()),
      data_(data),
      source_(source),
      model_(model),
      emulation_(job, rank),
      sleep_(std::move(sleep)) {}

absl::StatusOr<bool> LocalSteps::Load(uint64_t step) {
  if (source_ == nullptr) {
    RETURN_IF_ERROR(data_.Load(step, steps_per_epoch_, batch_));
    return true;
  }
  ASSIGN_OR_RETURN(const std::optional<uint64_t> number, source_->Next(step));
  if (number.has_value()) {
    RETURN_IF_ERROR(data_.LoadBatch(*number, batch_));
  } else {
    RETURN_IF_ERROR(data_.LoadNothing(batch_));
  }
  return number.has_value();
}

absl::StatusOr<StepResult> LocalSteps::Run(uint64_t step, const StepVectors& vectors,
                                           TrainObserver& observer) {
  const Time began = Now();
  ASSIGN_OR_RETURN(const bool loaded, Load(step));
  const Duration loading = Now() - began;
  TimedObserver timed(observer, emulation_.active());
  ASSIGN_OR_RETURN(const double loss_sum,
                   model_.Train(batch_, vectors.weights, {seed_, step, rank_}, vectors.contribution,
                                &timed, vectors.home, vectors.loss_scale));
  const Duration backward = timed.backward();
  const Duration computing = timed.forward() + backward;
  const Duration pause = emulation_.Pause(step, loading + computing);
  if (pause > Duration::zero()) sleep_(pause);
  if (emulation_.active()) {
    const ElementRange all[] = {{0, vectors.contribution.size()}};
    RETURN_IF_ERROR(observer.OnFinal(all));
  }
  return StepResult{.loss_sum = loss_sum,
                    .examples = batch_.size,
                    .data_seconds = Seconds(loading),
                    .compute_seconds = Seconds(computing + pause),
                    .forward_seconds = Seconds(timed.forward()),
                    .backward_seconds = Seconds(backward),
                    .none_left = !loaded};
}

}  // namespace leeway
