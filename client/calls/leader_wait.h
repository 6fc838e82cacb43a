// Lets the leader of a host's workers wait for the others (host_group.h). The leader waits in short
// pauses, and looks for their contributions between two pauses. Meanwhile the heartbeats tell it of
// new lives of workers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Any thread may call TakeOffers, Waiting and Cancel, and the exchange's thread the rest.
class LeaderWait {
 public:
  // The leader waits for `limit`, and longer while `goes_on` returns true.
  LeaderWait(Duration limit, std::function<bool()> goes_on, std::function<Time()> now)
      : limit_(limit), goes_on_(std::move(goes_on)), now_(std::move(now)) {}

  Time now() const { return now_(); }
  // Pauses a wait that began at `began`. `who` and `missing` say who waits, and for whom. Returns
  // DEADLINE_EXCEEDED if the wait has lasted too long, and CANCELLED after Cancel().
  absl::Status Pause(const std::string& who, const std::string& missing, Time began)
      EXCLUDES(mutex_);
  // Ends the wait, if there is one. Returns the offers that have come since the last call.
  std::optional<v1::HostGroup> End() EXCLUDES(mutex_);

  // Notes the memory that the members' newest lives offer.
  void TakeOffers(const v1::HostGroup& group) EXCLUDES(mutex_);
  // Returns for whom the leader waits. Returns an empty string if it does not wait.
  std::string Waiting() const EXCLUDES(mutex_);
  // Ends all waiting, for good.
  void Cancel() EXCLUDES(mutex_);

 private:
  const Duration limit_;
  const std::function<bool()> goes_on_;
  const std::function<Time()> now_;
  mutable Mutex mutex_;
  CondVar changed_;
  // Offers that End has not returned yet.
  std::optional<v1::HostGroup> offers_ GUARDED_BY(mutex_);
  std::string waiting_ GUARDED_BY(mutex_);
  bool cancelled_ GUARDED_BY(mutex_) = false;
};

}  // namespace leeway
