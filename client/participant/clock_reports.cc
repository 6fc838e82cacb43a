#include "client/participant/clock_reports.h"

#include <algorithm>
#include <utility>

namespace leeway {

void ClockReports::GoOnAt(uint64_t clock) {
  completed_ = clock;
  session_.SetClock(clock);
}

void ClockReports::Add(v1::StepMetrics metrics) {
  kept_ = std::move(metrics);
  SendIfComplete();
}

void ClockReports::Complete(const ExchangeReport& report) {
  version_step_ = report.version - std::min(version_, report.version);
  version_ = report.version;
  last_ = report;
  GoOnAt(report.clock + 1);
  SendIfComplete();
}

std::optional<uint64_t> ClockReports::open() const {
  return kept_ ? std::optional<uint64_t>(kept_->clock()) : std::nullopt;
}

void ClockReports::SendIfComplete() {
  if (open() != completed_) return;
  kept_->set_staleness(last_.staleness);
  kept_->set_exchange_seconds(last_.exchange_seconds);
  kept_->set_wait_seconds(last_.wait_seconds);
  if (last_.mean_distance) kept_->set_mean_distance(*last_.mean_distance);
  Send();
}

void ClockReports::BreakOff(double epoch, bool counts) {
  // All clocks before the one at which the worker goes on are over.
  kept_->set_clock(completed_);
  kept_->set_epoch(epoch);
  if (!counts) {
    kept_->set_dropped_steps(kept_->steps());
    kept_->set_dropped_examples(kept_->examples());
    kept_->clear_steps();
    kept_->clear_examples();
    kept_->clear_train_loss();
  }
  Send();
}

Traffic ClockReports::AllTraffic() const {
  Traffic all = client_.traffic();
  if (peers_ == nullptr) return all;
  const Traffic peers = peers_->traffic();
  return {all.sent + peers.sent, all.received + peers.received};
}

void ClockReports::Send() {
  const Traffic traffic = AllTraffic();
  kept_->set_bytes_sent(traffic.sent - reported_.sent);
  kept_->set_bytes_received(traffic.received - reported_.received);
  reported_ = traffic;
  session_.Report(*kept_);
  kept_.reset();
}

}  // namespace leeway
