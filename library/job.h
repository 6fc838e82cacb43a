// Takes part in a job as a worker, from any C++ program that has tensors and a training loop of its
// own. A Job registers the worker, sends its heartbeats, stops in order, survives restarts of
// servers, and runs the exchange. client.h is the same interface for other languages, and documents
// each function. docs/client.md describes both.
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
#include "client/participant/block_holder.h"
#include "common/clock.h"

namespace leeway {

enum class TensorKind { kWeight, kBias, kNorm, kEmbedding };

// A tensor is float32 and contiguous. All trained tensors come before all averaged ones.
struct JobTensor {
  std::string name;
  std::vector<uint64_t> shape;
  TensorKind kind = TensorKind::kWeight;
  // If true, no gradient moves the tensor, and the servers average the workers' values. `momentum`
  // is how far one batch moves the value towards the batch's own value, in (0, 1].
  bool averaged = false;
  double momentum = 0.1;
  // Factors of the job's learning rate and weight decay.
  double learning_rate_factor = 1;
  double weight_decay_factor = 1;
  // If true, a block begins with this tensor.
  bool begins_block = false;
};

struct JobOptions {
  // HOST:PORT of server 0. If empty, the environment specifies the address. If `rank` is absent,
  // the environment specifies the rank; if it does not, the worker gets a free rank.
  std::string coordinator;
  std::optional<uint32_t> rank;
  std::vector<JobTensor> tensors;
  // The initial weights, as a whole vector. If this worker must send the first weights to the
  // servers, it sends these.
  std::vector<float> initial;
  // The model's own optimizer, in the YAML of a job's `update`. Empty if it is not known.
  std::string update;
  double start_seconds = 120;
  // Starts the server in this process, for jobs whose workers hold the blocks. If null, such a job
  // is refused.
  HolderStarter hold_blocks = nullptr;
};

enum class JobExchange { kGradient, kDelta, kElastic };

struct JobInfo {
  uint32_t rank = 0;
  uint32_t workers = 0;
  JobExchange exchange = JobExchange::kGradient;
  uint64_t total = 0;
  uint64_t trained = 0;
  // The number of clocks of one worker. If 0, the worker goes on until Begin returns kFinished or
  // kStopped.
  uint64_t clocks = 0;
  uint64_t steps_per_clock = 0;
  uint64_t steps_per_epoch = 0;
  uint64_t seed = 0;
  uint64_t batch_size = 0;
  uint64_t examples = 0;
  // The number of leased batches in a pass of all workers together. If 0, batches are not leased,
  // and the number of the step decides which batch is next.
  uint64_t batches_per_epoch = 0;
  // The number of clocks between two evaluations. If 0, there is at most one evaluation, at the
  // end.
  uint64_t evaluate_every = 0;
  // Clock c begins with step first_step + (c - first_clock) * steps_per_clock. Both values are 0,
  // unless the run was resumed with another number of workers, batch size or number of steps in a
  // clock.
  uint64_t first_clock = 0;
  uint64_t first_step = 0;
  // True if the job's YAML has an `update` or a local optimizer of its own.
  bool has_update = false;
  // True if the job's `update` changes the learning rate by a schedule or a warm-up.
  bool has_schedule = false;
};

// A factor of the learning rate for one part of the vector: the elements from the end of the
// previous part up to `end`.
struct JobRate {
  uint64_t end = 0;
  double factor = 1;
  // If true, the clock does not update these elements, and the factor has no effect.
  bool skip = false;
};

// The measurements of a clock's steps. Values that are not known are 0.
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

// One thread at a time may use a job, but any thread may call Waiting(). A function with a deadline
// returns false or kNotYet if the deadline passes first; call it again. After a final error, call
// only Leave and the destructor. A function returns UNIMPLEMENTED if it cannot be called at this
// point, such as Final before Begin.
class Job {
 public:
  enum class Next { kClock, kFinished, kStopped, kNotYet };
  enum class Reason { kFinished, kStopped, kFailed };

  // Begins to join, and returns at once. Returns INVALID_ARGUMENT for invalid options.
  static absl::StatusOr<std::unique_ptr<Job>> Join(JobOptions options);
  virtual ~Job() = default;

  virtual absl::StatusOr<bool> Joined(Time deadline) = 0;
  // Returns the facts about the job. Valid after Joined().
  virtual const JobInfo& info() const = 0;
  virtual std::vector<JobTensor> tensors() const = 0;
  virtual std::span<float> weights() = 0;
  // Empty, except between Begin and End of a gradient exchange.
  virtual std::span<float> contribution() = 0;

  virtual absl::StatusOr<Next> Begin(Time deadline) = 0;
  virtual uint64_t clock() const = 0;
  virtual absl::StatusOr<bool> Wait(uint64_t first, uint64_t count, Time deadline) = 0;
  // Two functions for leased data; call them while a clock runs. NextBatch sets `batch` to the
  // number of the batch for the next step, or to nothing if the clock has no more batches.
  // UpcomingBatches returns at most `most` numbers that the next calls of NextBatch will probably
  // return, so that the program can read ahead.
  virtual absl::StatusOr<bool> NextBatch(Time deadline, std::optional<uint64_t>& batch) = 0;
  virtual std::vector<uint64_t> UpcomingBatches(size_t most) const = 0;
  virtual absl::Status SetExamples(uint64_t examples) = 0;
  virtual absl::Status SetRates(std::span<const JobRate> rates) = 0;
  virtual absl::Status Final(uint64_t first, uint64_t count) = 0;
  virtual absl::StatusOr<bool> End(const ClockMeasures& measures, Time deadline) = 0;
  virtual absl::StatusOr<bool> Settle(Time deadline) = 0;
  // Reads into memory of the job, and sets `weights` to it.
  virtual absl::StatusOr<bool> ReadAgain(Time deadline, std::span<const float>& weights) = 0;

  virtual absl::Status Evaluated(const JobEvaluation& evaluation) = 0;
  virtual absl::StatusOr<bool> StateWanted() = 0;
  // Saves the program's state. After the first call StateWanted() returns true for each checkpoint,
  // even if the exchange itself keeps no state.
  virtual absl::Status SaveState(std::string bytes) = 0;
  // Returns the loaded state, once. Returns NOT_FOUND if the checkpoint has no state.
  virtual absl::StatusOr<std::string> LoadState() = 0;
  virtual std::string Waiting() const = 0;

  // Leaves the job. Returns true once the job is sealed. Returns FAILED_PRECONDITION if the job
  // needs this worker again; then go on with Begin.
  virtual absl::StatusOr<bool> Leave(Reason reason, const std::string& message, Time deadline) = 0;
};

}  // namespace leeway
