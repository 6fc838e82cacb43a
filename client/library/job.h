// Takes part in a job as a worker, from any C++ program: registration, heartbeats, stops, restarts
// of servers and the exchange, for whoever has tensors and a training loop of its own. client.h is
// the same for other languages, and says what each function means; docs/client.md has both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"

namespace leeway {

enum class TensorRole { kWeight, kBias, kNorm, kEmbedding };

// float32 and contiguous. All trained tensors come before all averaged ones.
struct JobTensor {
  std::string name;
  std::vector<uint64_t> shape;
  TensorRole role = TensorRole::kWeight;
  // No gradient moves it; the servers average the workers' values. `momentum` is how far towards a
  // batch's value one batch moves it, in (0, 1].
  bool averaged = false;
  double momentum = 0.1;
  // What the job's learning rate and weight decay are multiplied by.
  double learning_rate_factor = 1;
  double weight_decay_factor = 1;

  uint64_t elements() const;
};

struct JobOptions {
  // HOST:PORT of server 0; empty: as the environment says, and so the rank, else a free one.
  std::string coordinator;
  std::optional<uint32_t> rank;
  std::vector<JobTensor> tensors;
  // The whole vector, used if this worker is to start the model.
  std::vector<float> initial;
  // The model's own optimizer as a job's `update` says it, in YAML; empty: nothing is known of it.
  std::string update;
  double start_seconds = 120;
};

enum class JobExchange { kGradient, kDelta, kElastic };

struct JobFactsOfWorker {
  uint32_t rank = 0;
  uint32_t workers = 0;
  JobExchange exchange = JobExchange::kGradient;
  uint64_t total = 0;
  uint64_t trained = 0;
  // Clocks of one worker; 0: until Begin says so.
  uint64_t clocks = 0;
  uint64_t steps_per_clock = 0;
  uint64_t steps_per_epoch = 0;
  uint64_t seed = 0;
  uint64_t batch_size = 0;
  uint64_t examples = 0;
  // Clocks between two evaluations; 0: there are none between.
  uint64_t evaluate_every = 0;
  // The servers' rule, or the worker's, stands in the job's YAML.
  bool has_update = false;
};

// What the steps of a clock have measured; zeros where something is not known.
struct ClockMeasures {
  uint64_t steps = 0;
  uint64_t examples = 0;
  double loss_sum = 0;
  double learning_rate = 0;
  double data_seconds = 0;
  double forward_seconds = 0;
  double backward_seconds = 0;
};

struct JobEvaluation {
  double loss = 0;
  std::optional<double> accuracy = std::nullopt;
  uint64_t examples = 0;
};

// One thread at a time, but Waiting() is for any. Functions with a deadline return false, or
// kNotYet, if it came first: call again. After an error that is not said to pass, only Leave and
// the destructor make sense.
class Job {
 public:
  enum class Next { kClock, kFinished, kStopped, kNotYet };
  enum class Reason { kFinished, kStopped, kFailed };

  // Begins to join; INVALID_ARGUMENT for options that make no sense.
  static absl::StatusOr<std::unique_ptr<Job>> Join(JobOptions options);
  ~Job();

  absl::StatusOr<bool> Joined(Time deadline);
  // After Joined().
  const JobFactsOfWorker& facts() const;
  std::vector<JobTensor> tensors() const;
  std::span<float> weights();
  // Between Begin and End of a gradient exchange, else empty.
  std::span<float> contribution();

  absl::StatusOr<Next> Begin(Time deadline);
  uint64_t clock() const;
  absl::StatusOr<bool> Wait(uint64_t first, uint64_t count, Time deadline);
  absl::Status SetExamples(uint64_t examples);
  absl::Status Final(uint64_t first, uint64_t count);
  absl::StatusOr<bool> End(const ClockMeasures& measures, Time deadline);
  absl::StatusOr<bool> Settle(Time deadline);

  absl::Status Evaluated(const JobEvaluation& evaluation);
  absl::StatusOr<bool> StateWanted();
  absl::Status SaveState(std::string bytes);
  // NOT_FOUND if there is none. Once.
  absl::StatusOr<std::string> LoadState();
  std::string Waiting() const;

  // True once the job is sealed. FAILED_PRECONDITION: go on with Begin.
  absl::StatusOr<bool> Leave(Reason reason, const std::string& message, Time deadline);

 private:
  class Impl;
  explicit Job(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace leeway
