#include "server/coordinator/control_link.h"

#include <algorithm>

namespace leeway {
namespace {

constexpr Duration kRetryPause = std::chrono::milliseconds(100);

}  // namespace

ControlLink::ControlLink(std::shared_ptr<grpc::Channel> channel, std::function<Time()> now)
    : stub_(v1::ShardControl::NewStub(std::move(channel))), now_(std::move(now)) {}

ControlLink::~ControlLink() { Close(); }

void ControlLink::Enqueue(Pending pending) {
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    queue_.push_back(std::move(pending));
  }
  Kick();
}

void ControlLink::Kick() {
  Start start;
  {
    MutexLock lock(mutex_);
    if (!context_) start = Next();
  }
  Begin(start);
}

ControlLink::Start ControlLink::Next() {
  const Time now = now_();
  if (closed_ || queue_.empty() || now < not_before_) return nullptr;
  const Limits& limits = queue_.front().limits;
  Duration limit = limits.attempt;
  if (limits.deadline != Time::max()) limit = std::min(limit, limits.deadline - now);
  context_ = std::make_unique<grpc::ClientContext>();
  context_->set_deadline(std::chrono::system_clock::now() +
                         std::chrono::duration_cast<std::chrono::system_clock::duration>(limit));
  return queue_.front().start;
}

// gRPC may call back at once, so no lock is held. While context_ is set nobody else begins a call
// and Close waits, so both stay as they are until Finished.
void ControlLink::Begin(const Start& start) {
  if (!start) return;
  grpc::ClientContext* context = nullptr;
  {
    MutexLock lock(mutex_);
    context = context_.get();
    if (closed_) context->TryCancel();
  }
  start(context, [this](grpc::Status status) { Finished(FromGrpc(status)); });
}

void ControlLink::Finished(const absl::Status& status) {
  std::function<void(const absl::Status&)> done;
  {
    MutexLock lock(mutex_);
    if (!closed_ && !Retry(status)) {
      done = std::move(queue_.front().done);
      queue_.pop_front();
    }
  }
  if (done) done(status);
  Start start;
  {
    MutexLock lock(mutex_);
    context_.reset();
    start = Next();
    // Under the lock, and last: without a next call this object may be gone after it.
    if (!start) idle_.NotifyAll();
  }
  Begin(start);
}

bool ControlLink::Retry(const absl::Status& status) {
  const Limits& limits = queue_.front().limits;
  const bool attempt_over = absl::IsDeadlineExceeded(status) && limits.deadline == Time::max();
  if (!limits.retry || (!absl::IsUnavailable(status) && !attempt_over)) return false;
  const Time again = now_() + kRetryPause;
  if (again >= limits.deadline) return false;
  not_before_ = again;
  return true;
}

void ControlLink::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  queue_.clear();
  if (context_) context_->TryCancel();
  while (context_) idle_.Wait(mutex_);
}

}  // namespace leeway
