// Leased data: a thread keeps a stock of batches from the coordinator, so that no step waits for
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/core/batch_stock.h"
#include "client/session/coordinator_session.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Thread-safe, but only one thread may train.
class LeasedBatches {
 public:
  struct Coordinator {
    // Asks once, and retries as long as that makes sense. Returns an answer or an error within some
    // limit. The request has `done` and `want`.
    std::function<absl::StatusOr<v1::LeaseDataReply>(const v1::LeaseDataRequest& request)> ask;
    // Ends the request in progress at once, and every later one. May be null.
    std::function<void()> break_off;
  };

  // The steps of the worker.
  struct Steps {
    // Steps of the whole job. The largest value if the job sets no number.
    uint64_t all = std::numeric_limits<uint64_t>::max();
    uint64_t of_clock = 1;
  };

  LeasedBatches(Coordinator coordinator, Steps steps);
  // Asks through `session`, which must outlive the result.
  static Coordinator Of(CoordinatorSession& session);
  // Cancels the request in progress.
  ~LeasedBatches();
  LeasedBatches(const LeasedBatches&) = delete;

  // The next clock is `clock`.
  void GoOnAt(uint64_t clock) EXCLUDES(mutex_);
  // Sets `batch` to the batch for the next step of `clock`, which never falls. It sets nothing if
  // no batch is left: then the clock's later steps get none either. It waits only if the stock is
  // empty, once a clock, until the coordinator has answered. Returns false if the deadline came
  // first, or the coordinator's error.
  absl::StatusOr<bool> Next(uint64_t clock, Time deadline, std::optional<uint64_t>& batch)
      EXCLUDES(mutex_);
  // The batches that the next calls of Next() will probably give, at most `most`. Does not wait.
  std::vector<uint64_t> Upcoming(size_t most) const EXCLUDES(mutex_);

  // Contributions of clocks below `clock` count. With `dropped`, contributions of later clocks do
  // not count, and their batches go back.
  void Settle(uint64_t clock, bool dropped = false) EXCLUDES(mutex_);

  bool HasBatch() const EXCLUDES(mutex_);
  enum class State { kReady, kWaiting, kOver };
  // Waits until there is a batch, all of the job's batches are done, or the deadline has come.
  // Other workers may first have to finish, or to be declared lost.
  absl::StatusOr<State> Await(Time deadline) EXCLUDES(mutex_);
  // Reports what is done, if the coordinator can be reached.
  void Flush() EXCLUDES(mutex_);
  // Says what the worker waits for. Empty if it does not wait.
  std::string Waiting() const EXCLUDES(mutex_);

 private:
  // The numbers of the newest questions that were wanted, begun and answered.
  struct Questions {
    uint64_t wanted = 1;
    uint64_t begun = 0;
    uint64_t answered = 0;
  };
  // The clock for which batches are being taken, and how many were taken.
  struct Place {
    uint64_t clock = 0;
    uint64_t taken = 0;
  };

  // Waits until there is something to ask, and returns the question's number. Nothing when the loop
  // is over.
  std::optional<uint64_t> AwaitQuestion(v1::LeaseDataRequest& request) EXCLUDES(mutex_);
  void Loop() EXCLUDES(mutex_);
  bool AskNow() const REQUIRES(mutex_);
  // Notes that `taken` batches were taken for the clock. The worker's remaining steps bound the
  // stock.
  void SetPlace(uint64_t clock, uint64_t taken) REQUIRES(mutex_);
  // Want: returns the number of a question that is asked after this call. Settled: true if that
  // question was answered, or never will be.
  uint64_t Want() REQUIRES(mutex_);
  bool Settled(uint64_t question) const REQUIRES(mutex_);

  const Coordinator coordinator_;
  const Steps steps_;

  mutable Mutex mutex_;
  CondVar changed_;
  BatchStock stock_ GUARDED_BY(mutex_);
  // The coordinator's final error.
  absl::Status error_ GUARDED_BY(mutex_);
  Questions questions_ GUARDED_BY(mutex_);
  Time next_report_ GUARDED_BY(mutex_);
  // The question that Next() waits for.
  std::optional<uint64_t> question_ GUARDED_BY(mutex_);
  Place place_ GUARDED_BY(mutex_);
  // The clock for which no batch is left.
  std::optional<uint64_t> empty_clock_ GUARDED_BY(mutex_);
  bool waiting_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
