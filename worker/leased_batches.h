// Leased data: keeps a stock of batches from the coordinator, on a thread of its own, so that no
// step waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "leeway/v1/coordinator.pb.h"
#include "worker/core/batch_stock.h"

namespace leeway {

// The source of batches for a worker's steps, if the step's number does not decide.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // The batch for a step (TrainingData::LoadBatch). Nothing if there is none: then the step is
  // empty, and so are the later steps of its clock.
  virtual absl::StatusOr<std::optional<uint64_t>> Next(uint64_t step) = 0;
  // What the next calls of Next() will probably give, at most `most`. Does not wait.
  virtual std::vector<uint64_t> Upcoming(size_t most) = 0;
};

// Thread-safe.
class LeasedBatches : public BatchSource {
 public:
  struct Coordinator {
    // Asks once, and retries as long as that makes sense. Returns an answer or an error within some
    // limit. The request has `done` and `want`.
    std::function<absl::StatusOr<v1::LeaseDataReply>(const v1::LeaseDataRequest& request)> ask;
    // Ends the request in progress at once, and every later one. May be null.
    std::function<void()> break_off;
  };

  LeasedBatches(uint64_t steps_per_clock, Coordinator coordinator);
  // Cancels the request in progress.
  ~LeasedBatches() override;
  LeasedBatches(const LeasedBatches&) = delete;

  // Waits only if the stock is empty, until the coordinator has answered, once a clock. Returns its
  // errors.
  absl::StatusOr<std::optional<uint64_t>> Next(uint64_t step) override EXCLUDES(mutex_);
  std::vector<uint64_t> Upcoming(size_t most) override EXCLUDES(mutex_);

  // Contributions of clocks below `clock` count; with `dropped`, those of later ones do not.
  void Settle(uint64_t clock, bool dropped = false) EXCLUDES(mutex_);

  bool HasBatch() const EXCLUDES(mutex_);
  enum class State { kReady, kWaiting, kOver };
  // Waits until there is a batch or all of the job's batches are done, at most `limit`. Other
  // workers may have to finish, or to be declared lost, before there is one.
  absl::StatusOr<State> Await(Duration limit) EXCLUDES(mutex_);
  // Reports what is done, if the coordinator can be reached.
  void Flush() EXCLUDES(mutex_);
  // What is waited for, in words; empty if nothing is.
  std::string Waiting() const EXCLUDES(mutex_);

 private:
  // Waits until there is something to ask, and returns its number. Nothing when the loop is over.
  std::optional<uint64_t> AwaitQuestion(v1::LeaseDataRequest& request) EXCLUDES(mutex_);
  void Loop() EXCLUDES(mutex_);
  bool AskNow() const REQUIRES(mutex_);
  // Want: the number of a question that is asked after this call. Settled: whether that question
  // has been answered, or never will be.
  uint64_t Want() REQUIRES(mutex_);
  bool Settled(uint64_t question) const REQUIRES(mutex_);

  const uint64_t steps_per_clock_;
  const Coordinator coordinator_;

  mutable Mutex mutex_;
  CondVar changed_;
  BatchStock stock_ GUARDED_BY(mutex_);
  // Of the coordinator; final.
  absl::Status error_ GUARDED_BY(mutex_);
  // The numbers of questions requested, begun and answered.
  uint64_t wanted_ GUARDED_BY(mutex_) = 1;
  uint64_t begun_ GUARDED_BY(mutex_) = 0;
  uint64_t answered_ GUARDED_BY(mutex_) = 0;
  Time next_report_ GUARDED_BY(mutex_);
  // The clock whose first empty step has been. Its later steps are empty, too.
  std::optional<uint64_t> empty_clock_ GUARDED_BY(mutex_);
  bool waiting_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
