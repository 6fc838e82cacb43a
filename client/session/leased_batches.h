// Keeps a stock of leased batches. A thread fetches batches from the coordinator, so that steps
// need not wait for the coordinator.
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
    // Sends the request, in which `done` and `want` are filled in, and retries as long as that
    // makes sense. Returns an answer or an error within some time limit.
    std::function<absl::StatusOr<v1::LeaseDataReply>(const v1::LeaseDataRequest& request)> ask;
    // Ends the request in progress at once, and every later request. May be null.
    std::function<void()> break_off;
  };

  // The numbers of this worker's steps.
  struct Steps {
    // The number of steps in the whole job, and in one clock. If the job sets no number, `all` is
    // the largest value.
    uint64_t all = std::numeric_limits<uint64_t>::max();
    uint64_t of_clock = 1;
  };

  LeasedBatches(Coordinator coordinator, Steps steps);
  // Returns functions that ask through `session`, which must outlive them.
  static Coordinator Of(CoordinatorSession& session);
  // Cancels the request in progress.
  ~LeasedBatches();
  LeasedBatches(const LeasedBatches&) = delete;

  // Sets the next clock to `clock`.
  void GoOnAt(uint64_t clock) EXCLUDES(mutex_);
  // Sets `batch` to the batch for the next step of `clock`, which never falls. If no batch is left,
  // sets `batch` to nothing, for this step and the clock's later steps. Waits for the coordinator's
  // answer only if the stock is empty, and at most once in a clock. Returns false if the deadline
  // came first. Returns the coordinator's error if it has sent one.
  absl::StatusOr<bool> Next(uint64_t clock, Time deadline, std::optional<uint64_t>& batch)
      EXCLUDES(mutex_);
  // Returns at most `most` batches that the next calls of Next() will probably return. Does not
  // wait.
  std::vector<uint64_t> Upcoming(size_t most) const EXCLUDES(mutex_);

  // Reports that the contributions of clocks below `clock` count, so that their batches are done.
  // If `dropped` is true, the contributions of later clocks do not count, and their batches go back
  // to the coordinator.
  void Settle(uint64_t clock, bool dropped = false) EXCLUDES(mutex_);

  bool HasBatch() const EXCLUDES(mutex_);
  enum class State { kReady, kWaiting, kOver };
  // Waits until there is a batch, all of the job's batches are done, or the deadline has come. This
  // may take until other workers have finished their batches, or until the coordinator has declared
  // those workers lost.
  absl::StatusOr<State> Await(Time deadline) EXCLUDES(mutex_);
  // Reports the batches that are done, if the coordinator can be reached.
  void Flush() EXCLUDES(mutex_);
  // Returns what the worker waits for. Returns an empty string if it does not wait.
  std::string Waiting() const EXCLUDES(mutex_);

 private:
  // A question is a request to the coordinator. Questions are numbered; these are the newest
  // question that was wanted, the newest that was begun, and the newest that was answered.
  struct Questions {
    uint64_t wanted = 1;
    uint64_t begun = 0;
    uint64_t answered = 0;
  };
  // The clock that is taking batches, and the number of batches that it has taken.
  struct Place {
    uint64_t clock = 0;
    uint64_t taken = 0;
  };

  // Waits until there is something to ask, fills in `request`, and returns the question's number.
  // Returns nothing when the loop is to end.
  std::optional<uint64_t> AwaitQuestion(v1::LeaseDataRequest& request) EXCLUDES(mutex_);
  void Loop() EXCLUDES(mutex_);
  bool AskNow() const REQUIRES(mutex_);
  // Notes that `clock` has taken `taken` batches. Limits the stock to the worker's remaining steps.
  void SetPlace(uint64_t clock, uint64_t taken) REQUIRES(mutex_);
  // Want requests that the thread sends a question after this call, and returns the question's
  // number. Settled returns true if that question was answered, or never will be.
  uint64_t Want() REQUIRES(mutex_);
  bool Settled(uint64_t question) const REQUIRES(mutex_);

  const Coordinator coordinator_;
  const Steps steps_;

  mutable Mutex mutex_;
  CondVar changed_;
  BatchStock stock_ GUARDED_BY(mutex_);
  // The coordinator's final error, or OK.
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
