// Leased data: keeps a stock of batches from the coordinator, on a thread of its own, so that no
// step waits for it.
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

// Thread-safe, but of one thread that trains.
class LeasedBatches {
 public:
  struct Coordinator {
    // Asks once, and retries as long as that makes sense. Returns an answer or an error within some
    // limit. The request has `done` and `want`.
    std::function<absl::StatusOr<v1::LeaseDataReply>(const v1::LeaseDataRequest& request)> ask;
    // Ends the request in progress at once, and every later one. May be null.
    std::function<void()> break_off;
  };

  // Of the worker.
  struct Steps {
    // Of the whole job; without a number of its own the largest.
    uint64_t all = std::numeric_limits<uint64_t>::max();
    uint64_t of_clock = 1;
  };

  LeasedBatches(Coordinator coordinator, Steps steps);
  // Of the session, which outlives it.
  static Coordinator Of(CoordinatorSession& session);
  // Cancels the request in progress.
  ~LeasedBatches();
  LeasedBatches(const LeasedBatches&) = delete;

  // The next clock is this one.
  void GoOnAt(uint64_t clock) EXCLUDES(mutex_);
  // The number of the batch for the next step of `clock`, which never falls. Nothing if there is
  // none: then there is none for the later steps of the clock either. Waits only if the stock is
  // empty, until the coordinator has answered, once a clock. False if the deadline came first.
  // Returns the coordinator's errors.
  absl::StatusOr<bool> Next(uint64_t clock, Time deadline, std::optional<uint64_t>& batch)
      EXCLUDES(mutex_);
  // What the next calls of Next() will probably give, at most `most`. Does not wait.
  std::vector<uint64_t> Upcoming(size_t most) const EXCLUDES(mutex_);

  // Contributions of clocks below `clock` count; with `dropped`, those of later ones do not, and
  // their batches go back.
  void Settle(uint64_t clock, bool dropped = false) EXCLUDES(mutex_);

  bool HasBatch() const EXCLUDES(mutex_);
  enum class State { kReady, kWaiting, kOver };
  // Waits until there is a batch or all of the job's batches are done, until the deadline. Other
  // workers may have to finish, or to be declared lost, before there is one.
  absl::StatusOr<State> Await(Time deadline) EXCLUDES(mutex_);
  // Reports what is done, if the coordinator can be reached.
  void Flush() EXCLUDES(mutex_);
  // What is waited for, in words; empty if nothing is.
  std::string Waiting() const EXCLUDES(mutex_);

 private:
  // Waits until there is something to ask, and returns its number. Nothing when the loop is over.
  std::optional<uint64_t> AwaitQuestion(v1::LeaseDataRequest& request) EXCLUDES(mutex_);
  void Loop() EXCLUDES(mutex_);
  bool AskNow() const REQUIRES(mutex_);
  // So many batches are taken for the clock: what is left of the worker's steps bounds the stock.
  void SetPlace(uint64_t clock, uint64_t taken) REQUIRES(mutex_);
  // Want: the number of a question that is asked after this call. Settled: whether that question
  // has been answered, or never will be.
  uint64_t Want() REQUIRES(mutex_);
  bool Settled(uint64_t question) const REQUIRES(mutex_);

  const Coordinator coordinator_;
  const Steps steps_;

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
  // What Next() waits for.
  std::optional<uint64_t> question_ GUARDED_BY(mutex_);
  // That the batches are taken for, and how many were.
  uint64_t clock_ GUARDED_BY(mutex_) = 0;
  uint64_t taken_ GUARDED_BY(mutex_) = 0;
  // The clock for which there is no batch any more.
  std::optional<uint64_t> empty_clock_ GUARDED_BY(mutex_);
  bool waiting_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
