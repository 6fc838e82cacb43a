// The common base of the runners whose worker takes steps of its own and exchanges the weights.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "worker/compute/flat_vector.h"
#include "worker/training/clock_runner.h"
#include "worker/training/local_training.h"

namespace leeway {

// The runner is its own exchange: nothing is in progress between two clocks.
class LocalRunner : public ClockRunner, protected ClockExchange {
 public:
  LocalRunner(const RunnerContext& context, LocalTraining training)
      : context_(context), training_(std::move(training)) {
    const v1::Exchange& exchange = context.job.exchange();
    if (exchange.has_elastic()) alpha_ = static_cast<float>(exchange.elastic().alpha());
  }

  ClockExchange& exchange() final { return *this; }
  std::span<const float> weights() final {
    const std::span<const float> mean = context_.carrier.mean();
    return mean.empty() ? answered().host() : mean;
  }

  absl::Status ReadLatest() final { return context_.carrier.ReadLatest(answered().host()); }
  absl::StatusOr<std::string> SaveState() const final { return training_.Save(); }
  absl::Status LoadState(const std::string& bytes) final { return training_.Load(bytes); }

 protected:
  // The latest answer of the other workers or servers.
  virtual FlatVector& answered() = 0;
  const RunnerContext& context() const { return context_; }
  Backend& backend() const { return context_.backend; }
  LocalTraining& training() { return training_; }
  // The factor of the elastic force. Absent for delta.
  const std::optional<float>& alpha() const { return alpha_; }

 private:
  const RunnerContext context_;
  LocalTraining training_;
  std::optional<float> alpha_;
};

}  // namespace leeway
