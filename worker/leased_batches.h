// Leased data: keeps a stock of batches from the coordinator, on a thread of its own, so that no
// step waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "leeway/v1/coordinator.pb.h"
#include "worker/data/batch_stock.h"

namespace leeway {

// Where a worker's steps get their batches from, if not from the step's number.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // The batch for a step (TrainingData::LoadBatch); nothing: there is none, and the step is empty,
  // as are those that follow it in its clock.
  virtual absl::StatusOr<std::optional<uint64_t>> Next(uint64_t step) = 0;
};

// Thread-safe.
class LeasedBatches : public BatchSource {
 public:
  struct Coordinator {
    // One question, sent again as long as that makes sense: an answer or an error, within some
    // limit. Done and want are filled in.
    std::function<absl::StatusOr<v1::LeaseDataReply>(const v1::LeaseDataRequest& request)> ask;
    // The question under way ends at once, and so does every later one. May be null.
    std::function<void()> break_off;
  };

  LeasedBatches(uint64_t steps_per_clock, Coordinator coordinator);
  // Breaks off the question under way.
  ~LeasedBatches() override;
  LeasedBatches(const LeasedBatches&) = delete;

  // Waits only if the stock is empty: until the coordinator has answered, once a clock. Its errors.
  absl::StatusOr<std::optional<uint64_t>> Next(uint64_t step) override EXCLUDES(mutex_);

  // Contributions of clocks below `clock` count; with `dropped`, those of later ones do not.
  void Settle(uint64_t clock, bool dropped = false) EXCLUDES(mutex_);

  bool HasBatch() const EXCLUDES(mutex_);
  enum class State { kReady, kWaiting, kOver };
  // Until there is a batch or the job's batches are all done, at most `limit`. Others may have to
  // finish, or to be taken for lost, before there is one.
  absl::StatusOr<State> Await(Duration limit) EXCLUDES(mutex_);
  // Reports what is done, if the coordinator can be reached.
  void Flush() EXCLUDES(mutex_);
  // In words; empty: nobody waits.
  std::string Waiting() const EXCLUDES(mutex_);

 private:
  // Waits until something is to be asked: its number. Nothing: the loop is over.
  std::optional<uint64_t> AwaitQuestion(v1::LeaseDataRequest& request) EXCLUDES(mutex_);
  void Loop() EXCLUDES(mutex_);
  bool AskNow() const REQUIRES(mutex_);
  // A question that is asked after this call; whether it has been answered, or never will be.
  uint64_t Want() REQUIRES(mutex_);
  bool Settled(uint64_t question) const REQUIRES(mutex_);

  const uint64_t steps_per_clock_;
  const Coordinator coordinator_;

  mutable Mutex mutex_;
  CondVar changed_;
  BatchStock stock_ GUARDED_BY(mutex_);
  // Of the coordinator; final.
  absl::Status error_ GUARDED_BY(mutex_);
  // Questions that were wanted, begun and answered.
  uint64_t wanted_ GUARDED_BY(mutex_) = 1;
  uint64_t begun_ GUARDED_BY(mutex_) = 0;
  uint64_t answered_ GUARDED_BY(mutex_) = 0;
  Time next_report_ GUARDED_BY(mutex_);
  // Whose first empty step has been: the others are, too.
  std::optional<uint64_t> empty_clock_ GUARDED_BY(mutex_);
  bool waiting_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
