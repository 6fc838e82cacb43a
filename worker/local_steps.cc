#include "worker/local_steps.h"

#include <chrono>
#include <utility>
#include <vector>

#include "common/first_step.h"
#include "common/status.h"

namespace leeway {
namespace {

Time Now() { return std::chrono::steady_clock::now(); }

// Forwards all calls to an observer, and measures how much of the batch's time the model itself
// took.
class TimedObserver : public TrainObserver {
 public:
  // If `hold` is true, does not tell the observer that elements are final.
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
  bool BringDown(std::span<const ElementRange> elements, const float* device) override {
    return observer_.BringDown(elements, device);
  }
  absl::Status OnFinal(std::span<const ElementRange> elements, bool known_finite) override {
    return hold_ ? absl::OkStatus() : observer_.OnFinal(elements, known_finite);
  }

  Duration forward() const { return forward_; }
  // Returns the time since the forward pass, including the time to check and send final elements.
  Duration backward() const { return Now() - resumed_; }

 private:
  TrainObserver& observer_;
  const bool hold_;
  Time resumed_;
  Duration forward_{};
};

}  // namespace

LocalSteps::LocalSteps(const v1::TrainingJob& job, uint32_t rank, const v1::JobLength& length,
                       const TrainingData& data, LeasedBatches* leases, Model& model,
                       std::function<void(Duration)> sleep)
    : seed_(job.metadata().seed()),
      rank_(rank),
      steps_per_epoch_(length.total_clocks() > 0 ? data.steps_per_epoch()
                                                 : length.steps_per_epoch()),
      data_(data),
      leases_(leases),
      length_(length),
      steps_(length.total_clocks() > 0 ? 0 : length.steps()),
      prefetch_(job.data().prefetch()),
      longest_wait_(FromSeconds(job.limits().exchange_seconds())),
      model_(model),
      emulation_(job, rank),
      sleep_(std::move(sleep)) {
  const uint32_t threads = job.data().loader_threads();
  if (threads == 0 || !data.worth_prefetching(!model.backend().shares_host_memory())) return;
  prefetcher_ = std::make_unique<BatchPrefetcher>(
      threads, [this](uint64_t key, Batch& batch) { return LoadKey(key, batch); });
}

absl::Status LocalSteps::LoadKey(uint64_t key, Batch& batch) const {
  return leases_ == nullptr ? data_.Load(key, steps_per_epoch_, batch)
                            : data_.LoadBatch(key, batch);
}

void LocalSteps::Announce(uint64_t key) const {
  leases_ == nullptr ? data_.WillLoad(key, steps_per_epoch_) : data_.WillLoadBatch(key);
}

absl::Status LocalSteps::Fetch(uint64_t key, std::span<const uint64_t> later) {
  if (prefetcher_ == nullptr) return LoadKey(key, batch_);
  std::vector<uint64_t> keys = {key};
  keys.insert(keys.end(), later.begin(), later.end());
  for (const uint64_t each : keys) Announce(each);
  prefetcher_->Want(keys);
  return prefetcher_->Take(key, longest_wait_, batch_);
}

absl::StatusOr<bool> LocalSteps::Load(uint64_t step) {
  if (leases_ == nullptr) {
    std::vector<uint64_t> later;
    const uint64_t end = steps_ == 0 ? step + 1 + prefetch_ : steps_;
    for (uint64_t next = step + 1; next < end && later.size() < prefetch_; ++next) {
      later.push_back(next);
    }
    RETURN_IF_ERROR(Fetch(step, later));
    return true;
  }
  std::optional<uint64_t> number;
  RETURN_IF_ERROR(leases_->Next(ClockOfStep(length_, step), Time::max(), number).status());
  if (number.has_value()) {
    RETURN_IF_ERROR(Fetch(*number, leases_->Upcoming(prefetch_)));
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
    RETURN_IF_ERROR(observer.OnFinal(all, false));
  }
  return StepResult{.loss_sum = loss_sum,
                    .examples = batch_.size,
                    .replaced = batch_.replaced,
                    .data_seconds = Seconds(loading),
                    .compute_seconds = Seconds(computing + pause),
                    .forward_seconds = Seconds(timed.forward()),
                    .backward_seconds = Seconds(backward),
                    .none_left = !loaded};
}

}  // namespace leeway
