#include "worker/client/call_queue.h"

#include <algorithm>
#include <utility>

#include <grpcpp/support/byte_buffer.h>

#include "common/status.h"

namespace leeway {

// A started operation. Guarded by the queue's mutex.
struct CallQueue::Run {
  uint32_t unanswered = 0;
  // The first error.
  absl::Status status;
  bool over() const { return !status.ok() || unanswered == 0; }
};

struct CallQueue::Call {
  // Constant.
  std::shared_ptr<Run> run;
  std::shared_ptr<Operation> operation;
  uint32_t number = 0;
  uint32_t server = 0;

  // Of whoever has the call in hand: its sender, then its callback.
  Time began;
  Time attempt_began;
  std::optional<RetryCore> retry;

  // Guarded by the queue's mutex.
  // What the server said when it put the call off.
  std::string waiting;
  std::list<CallPointer>::iterator place;
};

CallQueue::CallQueue(std::unique_ptr<Transport> transport, uint32_t servers, const Options& options)
    : options_(options),
      servers_(servers),
      transport_(std::move(transport)),
      lanes_(servers),
      jitter_(options.jitter) {}

CallQueue::~CallQueue() {
  Cancel();
  transport_->Close();
}

CallQueue::Ticket CallQueue::Start(std::shared_ptr<Operation> operation) {
  Ticket ticket;
  ticket.run_ = std::make_shared<Run>();
  {
    MutexLock lock(mutex_);
    if (cancelled_) {
      ticket.run_->status = absl::CancelledError("broken off");
      return ticket;
    }
    ticket.run_->unanswered = operation->size();
    for (uint32_t i = 0; i < operation->size(); ++i) {
      auto call = std::make_shared<Call>();
      call->run = ticket.run_;
      call->operation = operation;
      call->number = i;
      call->server = operation->ServerOf(i);
      lanes_[call->server].waiting.push_back(std::move(call));
    }
  }
  for (uint32_t server = 0; server < servers_; ++server) Pump(server);
  return ticket;
}

void CallQueue::Pump(uint32_t server) {
  while (true) {
    CallPointer call;
    {
      MutexLock lock(mutex_);
      Lane& lane = lanes_[server];
      // What is left of an operation that has failed is not begun.
      while (!lane.waiting.empty() && !lane.waiting.front()->run->status.ok())
        lane.waiting.pop_front();
      if (lane.waiting.empty() || lane.in_flight >= options_.window) return;
      call = std::move(lane.waiting.front());
      lane.waiting.pop_front();
      ++lane.in_flight;
      call->place = in_flight_.insert(in_flight_.end(), call);
    }
    call->began = transport_->Now();
    Send(call);
  }
}

void CallQueue::Send(const CallPointer& call) {
  call->attempt_began = transport_->Now();
  const Duration left = options_.retry.total - (call->attempt_began - call->began);
  const Duration timeout =
      std::clamp<Duration>(left, std::chrono::milliseconds(1), options_.attempt_timeout);
  transport_->CallUnary(call->server, call->operation->method(),
                        call->operation->Request(call->number), timeout,
                        [this, call](const absl::Status& status, const grpc::ByteBuffer& reply) {
                          OnDone(call, status, reply);
                        });
}

void CallQueue::OnDone(const CallPointer& call, const absl::Status& status,
                       const grpc::ByteBuffer& reply) {
  if (status.ok()) {
    Finish(call, call->operation->TakeReply(call->number, reply));
    return;
  }
  const RetryDecision decision = Decide(call, status);
  if (!decision.error.ok()) {
    Finish(call, decision.error);
  } else if (decision.delay == Duration::zero()) {
    Send(call);
  } else {
    transport_->CallAfter(decision.delay, [this, call] { Resume(call); });
  }
}

RetryDecision CallQueue::Decide(const CallPointer& call, const absl::Status& status) {
  const Time now = transport_->Now();
  MutexLock lock(mutex_);
  if (!call->run->status.ok()) return {call->run->status, {}};
  if (!call->retry.has_value()) {
    call->retry.emplace(options_.retry, RandomStream(jitter_.NextU64(), RandomPurpose::kRetry));
  }
  const RetryDecision decision =
      call->retry->OnFailure(status, now - call->attempt_began, now - call->began);
  call->waiting = call->retry->told();
  return decision;
}

void CallQueue::Resume(const CallPointer& call) {
  absl::Status status;
  {
    MutexLock lock(mutex_);
    status = call->run->status;
  }
  if (status.ok()) {
    Send(call);
  } else {
    Finish(call, status);
  }
}

void CallQueue::Finish(const CallPointer& call, const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    in_flight_.erase(call->place);
    --lanes_[call->server].in_flight;
    --call->run->unanswered;
    if (!status.ok() && call->run->status.ok()) {
      call->run->status = Annotate(status, call->operation->Describe(call->number));
    }
    if (call->run->over()) changed_.NotifyAll();
  }
  Pump(call->server);
}

absl::Status CallQueue::Wait(const Ticket& ticket, Time deadline) {
  if (ticket.run_ == nullptr) return absl::InvalidArgumentError("waiting for an empty ticket");
  MutexLock lock(mutex_);
  while (!ticket.run_->over()) {
    if (deadline == Time::max()) {
      changed_.Wait(mutex_);
    } else if (!changed_.WaitUntil(mutex_, deadline) && !ticket.run_->over()) {
      return absl::DeadlineExceededError(absl::StrCat("not done in time; ", FirstWaiting()));
    }
  }
  return ticket.run_->status;
}

std::string CallQueue::Waiting() const {
  MutexLock lock(mutex_);
  return FirstWaiting();
}

std::string CallQueue::FirstWaiting() const {
  for (const CallPointer& call : in_flight_) {
    if (!call->waiting.empty()) return call->waiting;
  }
  return "";
}

void CallQueue::Cancel() {
  {
    MutexLock lock(mutex_);
    cancelled_ = true;
    const absl::Status cancelled = absl::CancelledError("broken off");
    for (const CallPointer& call : in_flight_) {
      if (call->run->status.ok()) call->run->status = cancelled;
    }
    for (Lane& lane : lanes_) {
      for (const CallPointer& call : lane.waiting) {
        if (call->run->status.ok()) call->run->status = cancelled;
      }
      lane.waiting.clear();
    }
    changed_.NotifyAll();
  }
  transport_->Cancel();
}

}  // namespace leeway
