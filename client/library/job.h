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

enum class TensorKind { kWeight, kBias, kNorm, kEmbedding };

// float32 and contiguous. All trained tensors come before all averaged ones.
struct JobTensor {
  std::string name;
  std::vector<uint64_t> shape;
  TensorKind kind = TensorKind::kWeight;
  // No gradient moves it; the servers average the workers' values. `momentum` is how far towards a
  // batch's value one batch moves it, in (0, 1].
  bool averaged = false;
  double momentum = 0.1;
  // What the job's learning rate and weight decay are multiplied by.
  double learning_rate_factor = 1;
  double weight_decay_factor = 1;
  // A block begins with it.
  bool begins_block = false;
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

struct JobInfo {
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
  // Of leased batches, in a pass of all workers together; 0: the step's number says which is next.
  uint64_t batches_per_epoch = 0;
  // Clocks between two evaluations; 0: there are none between.
  uint64_t evaluate_every = 0;
  // Clock c begins with step first_step + (c - first_clock) * steps_per_clock of the epochs. 0,
  // unless the run was resumed with other workers, batches or steps of a clock.
  uint64_t first_clock = 0;
  uint64_t first_step = 0;
  // The servers' rule, or the worker's, stands in the job's YAML.
  bool has_update = false;
  // The servers' rule moves the learning rate by itself.
  bool has_schedule = false;
};

// Elements from the end of the part before up to `end`.
struct JobRate {
  uint64_t end = 0;
  double factor = 1;
  // The clock does not update them; the factor is nothing then.
  bool skip = false;
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
// the destructor make sense. UNIMPLEMENTED: the call does not belong here, such as Final before
// Begin.
class Job {
 public:
  enum class Next { kClock, kFinished, kStopped, kNotYet };
  enum class Reason { kFinished, kStopped, kFailed };

  // Begins to join; INVALID_ARGUMENT for options that make no sense.
  static absl::StatusOr<std::unique_ptr<Job>> Join(JobOptions options);
  virtual ~Job() = default;

  virtual absl::StatusOr<bool> Joined(Time deadline) = 0;
  // After Joined().
  virtual const JobInfo& info() const = 0;
  virtual std::vector<JobTensor> tensors() const = 0;
  virtual std::span<float> weights() = 0;
  // Between Begin and End of a gradient exchange, else empty.
  virtual std::span<float> contribution() = 0;

  virtual absl::StatusOr<Next> Begin(Time deadline) = 0;
  virtual uint64_t clock() const = 0;
  virtual absl::StatusOr<bool> Wait(uint64_t first, uint64_t count, Time deadline) = 0;
  // Of leased data, in a clock: the number of the batch for its next step; nothing if the clock has
  // no more. And what the next calls will probably give, at most `most`: to read ahead.
  virtual absl::StatusOr<bool> NextBatch(Time deadline, std::optional<uint64_t>& batch) = 0;
  virtual std::vector<uint64_t> UpcomingBatches(size_t most) const = 0;
  virtual absl::Status SetExamples(uint64_t examples) = 0;
  virtual absl::Status SetRates(std::span<const JobRate> rates) = 0;
  virtual absl::Status Final(uint64_t first, uint64_t count) = 0;
  virtual absl::StatusOr<bool> End(const ClockMeasures& measures, Time deadline) = 0;
  virtual absl::StatusOr<bool> Settle(Time deadline) = 0;
  // Into `weights`, which the job owns.
  virtual absl::StatusOr<bool> ReadAgain(Time deadline, std::span<const float>& weights) = 0;

  virtual absl::Status Evaluated(const JobEvaluation& evaluation) = 0;
  virtual absl::StatusOr<bool> StateWanted() = 0;
  // Where no state is wanted: says that from now on it is.
  virtual absl::Status SaveState(std::string bytes) = 0;
  // NOT_FOUND if there is none. Once.
  virtual absl::StatusOr<std::string> LoadState() = 0;
  virtual std::string Waiting() const = 0;

  // True once the job is sealed. FAILED_PRECONDITION: go on with Begin.
  virtual absl::StatusOr<bool> Leave(Reason reason, const std::string& message, Time deadline) = 0;
};

}  // namespace leeway
