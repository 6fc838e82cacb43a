#include "client/session/others_heard.h"

#include <chrono>

#include <spdlog/spdlog.h>

#include "absl/algorithm/container.h"

namespace leeway {
namespace {

constexpr Duration kStatusAttempt = std::chrono::seconds(5);

}  // namespace

void OthersHeard::Look(const std::string& what) {
  const Time now = calls_.now();
  const Duration limit = life_.exchange_limit;
  if (what.empty()) waits_since_.reset();
  if (!waits_since_) {
    waits_since_ = asked_ = now;
    return;
  }
  if (now - asked_ < limit / 4) return;
  const bool beyond = now - *waits_since_ >= limit;
  const bool said = asked_ - *waits_since_ >= limit;
  asked_ = now;
  if (!Ask()) return;
  {
    MutexLock lock(mutex_);
    heard_ = now;
  }
  if (beyond && !said) {
    spdlog::info(
        "{}, for longer than limits.exchange_seconds ({} s); the coordinator hears them, "
        "so the wait goes on",
        what, Seconds(limit));
  }
}

bool OthersHeard::Ask() {
  grpc::ClientContext context;
  context.set_deadline(After(kStatusAttempt));
  v1::JobStatus status;
  if (!calls_.stub().GetJobStatus(&context, v1::GetJobStatusRequest(), &status).ok()) return false;
  const auto is_heard = [](const auto& process) {
    return process.state() != "lost" && process.state() != "waiting";
  };
  return absl::c_all_of(status.servers(), is_heard) &&
         (life_.goes_on_without_lost || absl::c_all_of(status.workers(), is_heard));
}

bool OthersHeard::Lately() const {
  const Time now = calls_.now();
  MutexLock lock(mutex_);
  return heard_ && now - *heard_ < life_.exchange_limit / 2;
}

}  // namespace leeway
