#include "client/session/leased_batches.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/clock.h"
#include "common/status.h"

namespace leeway {
namespace {

// Finished batches are reported this often, if no other question reports them.
constexpr Duration kReportEvery = std::chrono::milliseconds(250);
// The pause between two questions when no batch is left, because other workers have to finish their
// batches first.
constexpr Duration kAgain = std::chrono::milliseconds(20);

}  // namespace

LeasedBatches::LeasedBatches(Coordinator coordinator, Steps steps)
    : coordinator_(std::move(coordinator)), steps_(steps), thread_([this] { Loop(); }) {}

LeasedBatches::Coordinator LeasedBatches::Of(CoordinatorSession& session) {
  return {
      .ask = [&session](const v1::LeaseDataRequest& request) { return session.LeaseData(request); },
      .break_off = [&session] { session.EndLeases(); }};
}

LeasedBatches::~LeasedBatches() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  if (coordinator_.break_off) coordinator_.break_off();
  thread_.join();
}

void LeasedBatches::SetPlace(uint64_t clock, uint64_t taken) {
  place_ = {clock, taken};
  // The division comes first, because the product may overflow.
  const uint64_t left_of_clock =
      steps_.all / steps_.of_clock < clock ? 0 : steps_.all - clock * steps_.of_clock;
  stock_.SetLeft(left_of_clock - std::min(taken, left_of_clock));
  if (stock_.gives_back()) changed_.NotifyAll();
}

void LeasedBatches::GoOnAt(uint64_t clock) {
  MutexLock lock(mutex_);
  SetPlace(clock, 0);
}

absl::StatusOr<bool> LeasedBatches::Next(uint64_t clock, Time deadline,
                                         std::optional<uint64_t>& batch) {
  batch.reset();
  MutexLock lock(mutex_);
  if (empty_clock_ == clock) return true;
  if (place_.clock != clock) SetPlace(clock, 0);
  if (stock_.empty() && !question_) {
    stock_.RanDry();
    question_ = Want();
  }
  while (question_ && !Settled(*question_)) {
    if (deadline == Time::max()) {
      changed_.Wait(mutex_);
    } else if (!changed_.WaitUntil(mutex_, deadline)) {
      return false;
    }
  }
  question_.reset();
  if (stock_.empty()) RETURN_IF_ERROR(error_);
  batch = stock_.Take(clock);
  if (batch.has_value()) {
    SetPlace(clock, place_.taken + 1);
  } else {
    empty_clock_ = clock;
  }
  if (stock_.low()) changed_.NotifyAll();
  return true;
}

std::vector<uint64_t> LeasedBatches::Upcoming(size_t most) const {
  MutexLock lock(mutex_);
  return stock_.First(most);
}

bool LeasedBatches::HasBatch() const {
  MutexLock lock(mutex_);
  return !stock_.empty();
}

void LeasedBatches::Settle(uint64_t clock, bool dropped) {
  MutexLock lock(mutex_);
  stock_.Settle(clock, dropped);
  if (stock_.gives_back()) changed_.NotifyAll();
}

uint64_t LeasedBatches::Want() {
  questions_.wanted = questions_.begun + 1;
  changed_.NotifyAll();
  return questions_.wanted;
}

bool LeasedBatches::Settled(uint64_t question) const {
  return questions_.answered >= question || !error_.ok() || ending_;
}

absl::StatusOr<LeasedBatches::State> LeasedBatches::Await(Time deadline) {
  MutexLock lock(mutex_);
  waiting_ = true;
  if (stock_.empty()) stock_.RanDry();
  while (stock_.empty() && !stock_.over() && error_.ok() && SteadyNow() < deadline) {
    const uint64_t question = Want();
    while (!Settled(question) && changed_.WaitUntil(mutex_, deadline)) {
    }
    const Time again = std::min(SteadyNow() + kAgain, deadline);
    while (!ending_ && stock_.empty() && !stock_.over() && error_.ok() &&
           changed_.WaitUntil(mutex_, again)) {
    }
  }
  waiting_ = false;
  RETURN_IF_ERROR(error_);
  if (!stock_.empty()) return State::kReady;
  return stock_.over() ? State::kOver : State::kWaiting;
}

void LeasedBatches::Flush() {
  MutexLock lock(mutex_);
  if (!stock_.reports()) return;
  const Time limit = SteadyNow() + kReportEvery;
  const uint64_t question = Want();
  while (!Settled(question) && changed_.WaitUntil(mutex_, limit)) {
  }
}

std::string LeasedBatches::Waiting() const {
  MutexLock lock(mutex_);
  return waiting_ ? "a batch: other workers have all the remaining batches" : "";
}

bool LeasedBatches::AskNow() const {
  if (questions_.wanted > questions_.begun || stock_.gives_back()) return true;
  if (stock_.reports() && SteadyNow() >= next_report_) return true;
  return stock_.low() && !stock_.none_left() && !stock_.over();
}

std::optional<uint64_t> LeasedBatches::AwaitQuestion(v1::LeaseDataRequest& request) {
  MutexLock lock(mutex_);
  while (!ending_ && error_.ok() && !AskNow()) {
    changed_.WaitUntil(mutex_, stock_.reports() ? next_report_ : SteadyNow() + kReportEvery);
  }
  if (ending_ || !error_.ok()) return std::nullopt;
  stock_.Ask(request);
  return questions_.begun = std::max(questions_.wanted, questions_.begun + 1);
}

void LeasedBatches::Loop() {
  while (true) {
    v1::LeaseDataRequest request;
    const std::optional<uint64_t> number = AwaitQuestion(request);
    if (!number.has_value()) return;
    const auto reply = coordinator_.ask(request);
    MutexLock lock(mutex_);
    if (reply.ok()) {
      stock_.OnReply(*reply);
      questions_.answered = *number;
    } else {
      stock_.OnFailure();
      error_ = reply.status();
    }
    next_report_ = SteadyNow() + kReportEvery;
    changed_.NotifyAll();
  }
}

}  // namespace leeway
