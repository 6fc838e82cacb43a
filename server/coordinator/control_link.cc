#include "server/coordinator/control_link.h"

#include <algorithm>

#include "common/retry_hint.h"

namespace leeway {
namespace {

constexpr Duration kRetryPause = std::chrono::milliseconds(100);

}  // namespace

ControlLink::ControlLink(std::shared_ptr<grpc::Channel> channel, std::function<Time()> now)
    : stub_(v1::ShardControl::NewStub(std::move(channel))),
      now_(std::move(now)),
      thread_([this] { Loop(); }) {}

ControlLink::~ControlLink() { Close(); }

void ControlLink::Enqueue(Pending pending) {
  MutexLock lock(mutex_);
  if (closed_) return;
  queue_.push_back(std::move(pending));
  changed_.NotifyAll();
}

void ControlLink::Loop() {
  while (const Attempt attempt = Next()) {
    grpc::ClientContext* context;
    {
      MutexLock lock(mutex_);
      context = context_.get();
    }
    const grpc::Status status = attempt(context);
    Finished(ResultOf(status, *context));
  }
}

ControlLink::Attempt ControlLink::Next() {
  MutexLock lock(mutex_);
  while (!closed_ && (queue_.empty() || now_() < not_before_)) {
    if (queue_.empty()) {
      changed_.Wait(mutex_);
    } else {
      changed_.WaitUntil(mutex_, not_before_);
    }
  }
  if (closed_) return nullptr;
  Pending& front = queue_.front();
  if (!front.began) front.began = now_();
  const Limits& limits = front.limits;
  Duration limit = limits.attempt;
  if (limits.deadline != Time::max()) limit = std::min(limit, limits.deadline - now_());
  context_ = std::make_unique<grpc::ClientContext>();
  context_->set_deadline(std::chrono::system_clock::now() +
                         std::chrono::duration_cast<std::chrono::system_clock::duration>(limit));
  return front.attempt;
}

void ControlLink::Finished(const absl::Status& status) {
  std::function<void(const absl::Status&)> done;
  {
    MutexLock lock(mutex_);
    context_.reset();
    if (closed_ || Retry(status)) return;
    done = std::move(queue_.front().done);
    queue_.pop_front();
  }
  done(status);
}

bool ControlLink::Retry(const absl::Status& status) {
  if (status.ok() || !IsRetryable(status.code())) return false;
  const auto& [limits, attempt, began, done] = queue_.front();
  const Time again = now_() + kRetryPause;
  if (again >= limits.deadline || again - *began > limits.again) return false;
  not_before_ = again;
  return true;
}

void ControlLink::Close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
    queue_.clear();
    if (context_) context_->TryCancel();
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace leeway
