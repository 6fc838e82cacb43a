#include "worker/leased_batches.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/status.h"

namespace leeway {
namespace {

// What is done is reported so often, if nothing else is asked meanwhile.
constexpr Duration kReportEvery = std::chrono::milliseconds(250);
// Between two questions of one who finds nothing left: others have to finish first.
constexpr Duration kAgain = std::chrono::milliseconds(20);
// A question ends sooner, with an answer or an error.
constexpr Duration kForLong = std::chrono::hours(24);

Time Now() { return std::chrono::steady_clock::now(); }

}  // namespace

LeasedBatches::LeasedBatches(uint64_t steps_per_clock, AskFor ask)
    : steps_per_clock_(steps_per_clock), ask_(std::move(ask)), thread_([this] { Loop(); }) {}

LeasedBatches::~LeasedBatches() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

absl::StatusOr<std::optional<uint64_t>> LeasedBatches::Next(uint64_t step) {
  MutexLock lock(mutex_);
  const uint64_t clock = step / steps_per_clock_;
  if (stock_.empty()) {
    stock_.RanDry();
    RETURN_IF_ERROR(Answered(Now() + kForLong));
  }
  const std::optional<uint64_t> batch = stock_.Take(clock);
  if (stock_.low()) changed_.NotifyAll();
  return batch;
}

bool LeasedBatches::HasBatch() const {
  MutexLock lock(mutex_);
  return !stock_.empty();
}

void LeasedBatches::Settle(uint64_t clock, bool dropped) {
  MutexLock lock(mutex_);
  stock_.Settle(clock, dropped);
}

absl::Status LeasedBatches::Answered(Time limit) {
  const uint64_t answer = wanted_ = begun_ + 1;
  changed_.NotifyAll();
  while (answered_ < answer && error_.ok() && !ending_ && changed_.WaitUntil(mutex_, limit)) {
  }
  return error_;
}

absl::StatusOr<LeasedBatches::State> LeasedBatches::Await(Duration limit) {
  const Time end = Now() + limit;
  MutexLock lock(mutex_);
  waiting_ = true;
  if (stock_.empty()) stock_.RanDry();
  while (stock_.empty() && !stock_.over() && error_.ok() && Now() < end) {
    if (!Answered(end).ok() || !stock_.empty() || stock_.over()) break;
    const Time again = Now() + kAgain;
    while (!ending_ && stock_.empty() && !stock_.over() && error_.ok() &&
           changed_.WaitUntil(mutex_, std::min(again, end))) {
    }
  }
  waiting_ = false;
  RETURN_IF_ERROR(error_);
  if (!stock_.empty()) return State::kReady;
  return stock_.over() ? State::kOver : State::kWaiting;
}

void LeasedBatches::Flush() {
  MutexLock lock(mutex_);
  if (stock_.reports()) Answered(Now() + kReportEvery).IgnoreError();
}

std::string LeasedBatches::Waiting() const {
  MutexLock lock(mutex_);
  return waiting_ ? "a batch: those that are left are with other workers" : "";
}

bool LeasedBatches::AskNow() const {
  if (wanted_ > begun_) return true;
  if (stock_.reports() && Now() >= next_report_) return true;
  return stock_.low() && !stock_.none_left() && !stock_.over();
}

void LeasedBatches::Loop() {
  MutexLock lock(mutex_);
  while (!ending_ && error_.ok()) {
    if (!AskNow()) {
      changed_.WaitUntil(mutex_, stock_.reports() ? next_report_ : Now() + kReportEvery);
      continue;
    }
    v1::LeaseDataRequest request;
    stock_.Ask(request);
    const uint64_t number = begun_ = std::max(wanted_, begun_ + 1);
    mutex_.Unlock();
    const auto reply = ask_(request);
    mutex_.Lock();
    if (reply.ok()) {
      stock_.OnReply(*reply);
      answered_ = number;
    } else {
      stock_.OnFailure();
      error_ = reply.status();
    }
    next_report_ = Now() + kReportEvery;
    changed_.NotifyAll();
  }
}

}  // namespace leeway
