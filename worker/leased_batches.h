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
  // The batch for a step (TrainingData::LoadBatch); nothing: there is none, the step is empty.
  virtual absl::StatusOr<std::optional<uint64_t>> Next(uint64_t step) = 0;
};

// Thread-safe.
class LeasedBatches : public BatchSource {
 public:
  // One question to the coordinator, sent again as long as that makes sense. Done and want are
  // filled in.
  using AskFor =
      std::function<absl::StatusOr<v1::LeaseDataReply>(const v1::LeaseDataRequest& request)>;

  LeasedBatches(uint64_t steps_per_clock, AskFor ask);
  // Waits for the question under way.
  ~LeasedBatches() override;
  LeasedBatches(const LeasedBatches&) = delete;

  // Waits only if the stock is empty: until the coordinator has answered. Its errors.
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
  void Loop() EXCLUDES(mutex_);
  bool AskNow() const REQUIRES(mutex_);
  // Until an answer to a question of after this call.
  absl::Status Answered(Time limit) REQUIRES(mutex_);

  const uint64_t steps_per_clock_;
  const AskFor ask_;

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
  bool waiting_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
