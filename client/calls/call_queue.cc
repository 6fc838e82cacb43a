#include "client/calls/call_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace leeway {

// A started operation. Guarded by the queue's mutex.
struct CallQueue::Run {
  uint32_t unanswered = 0;
  // The first error.
  absl::Status status;
  // Null once the operation has been told that it is over.
  std::shared_ptr<Operation> operation;
  bool over() const { return !status.ok() || unanswered == 0; }
  bool settled() const { return unanswered == 0; }
};

class CallQueue::Call : public TransportCall, public std::enable_shared_from_this<Call> {
 public:
  void OnAccepted() override { queue->OnAccepted(shared_from_this()); }
  std::optional<Duration> OnMissing(const std::string& missing) override {
    return queue->OnMissing(shared_from_this(), missing);
  }
  void OnDone(const absl::Status& status, const TransportReply& reply) override {
    queue->OnDone(shared_from_this(), status, reply);
  }

  // Returns true if `a` goes after `b`.
  static bool After(const CallPointer& a, const CallPointer& b) {
    return a->priority != b->priority ? a->priority > b->priority : a->sequence > b->sequence;
  }

  // Constant once started.
  CallQueue* queue = nullptr;
  std::shared_ptr<Run> run;
  std::shared_ptr<Operation> operation;
  uint32_t number = 0;
  uint32_t server = 0;
  uint32_t priority = 0;
  uint64_t sequence = 0;

  // Used by one thread at a time: the thread that sends the call, then the thread that runs its
  // callback.
  Time began;
  // The time at which the call's limit begins: when the call began, or when its wait was last
  // extended.
  Time limited_from;
  Time attempt_began;
  std::optional<RetryCore> retry;

  // Guarded by the queue's mutex. The bytes of the attempt, while they are in flight.
  std::optional<uint64_t> in_transit;
  // What the server said when it postponed the call.
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

void CallQueue::Tell(const Ends& ends) {
  for (const auto& [operation, status] : ends) operation->OnOver(status);
}

void CallQueue::TakeOff(Run& run, Ends& ends) {
  if (--run.unanswered > 0) return;
  changed_.NotifyAll();
  ends.emplace_back(std::move(run.operation), run.status);
}

CallQueue::Ticket CallQueue::Start(std::shared_ptr<Operation> operation) {
  Ticket ticket;
  ticket.run_ = std::make_shared<Run>();
  uint32_t size = 0;
  {
    MutexLock lock(mutex_);
    if (cancelled_) ticket.run_->status = absl::CancelledError("the client was cancelled");
    if (!cancelled_) size = operation->size();
    ticket.run_->unanswered = size;
    if (size > 0) ticket.run_->operation = operation;
    for (uint32_t i = 0; i < size; ++i) {
      auto call = std::make_shared<Call>();
      call->queue = this;
      call->run = ticket.run_;
      call->operation = operation;
      call->number = i;
      call->server = operation->ServerOf(i);
      call->priority = operation->Priority(i);
      call->sequence = sequence_++;
      auto& waiting = lanes_[call->server].waiting;
      waiting.push_back(std::move(call));
      std::push_heap(waiting.begin(), waiting.end(), Call::After);
    }
  }
  if (size == 0) operation->OnOver(ticket.run_->status);
  for (uint32_t server = 0; server < servers_; ++server) Pump(server);
  return ticket;
}

bool CallQueue::HasRoom(const Lane& lane, const Call& first) const {
  if (!lane.transit.Admits()) return false;
  // The window is twice the number of calls that fill the link, because some requests have arrived
  // already and wait for other workers.
  const uint32_t window = std::max(options_.window, 2 * lane.transit.Filling());
  if (lane.in_flight.size() < std::min(window, options_.window_max)) return true;
  return std::all_of(lane.in_flight.begin(), lane.in_flight.end(),
                     [&](const CallPointer& call) { return first.priority < call->priority; });
}

void CallQueue::DropFailed(Lane& lane, Ends& ends) {
  while (!lane.waiting.empty() && !lane.waiting.front()->run->status.ok()) {
    TakeOff(*lane.waiting.front()->run, ends);
    std::pop_heap(lane.waiting.begin(), lane.waiting.end(), Call::After);
    lane.waiting.pop_back();
  }
}

CallQueue::CallPointer CallQueue::TakeNext(uint32_t server) {
  Lane& lane = lanes_[server];
  CallPointer call;
  if (!lane.again.empty()) {
    call = std::move(lane.again.front());
    lane.again.pop_front();
    return call;
  }
  if (lane.waiting.empty() || !HasRoom(lane, *lane.waiting.front())) return nullptr;
  std::pop_heap(lane.waiting.begin(), lane.waiting.end(), Call::After);
  call = std::move(lane.waiting.back());
  lane.waiting.pop_back();
  call->place = lane.in_flight.insert(lane.in_flight.end(), call);
  call->began = call->limited_from = transport_->Now();
  const uint64_t bytes = call->operation->Bytes(call->number);
  // A request without values is not counted, because it does not measure the link, and because the
  // server may hold it for long.
  if (bytes > 0 && transport_->HasLink(server)) {
    call->in_transit = bytes;
    lane.transit.OnSent(bytes, call->began);
  }
  return call;
}

void CallQueue::Pump(uint32_t server) {
  while (true) {
    CallPointer call;
    Ends ends;
    {
      MutexLock lock(mutex_);
      DropFailed(lanes_[server], ends);
      call = TakeNext(server);
    }
    Tell(ends);
    if (call == nullptr) return;
    call->attempt_began = transport_->Now();
    const Duration left = options_.retry.total - (call->attempt_began - call->limited_from);
    const Duration timeout =
        std::clamp<Duration>(left, std::chrono::milliseconds(1), options_.attempt_timeout);
    transport_->Call(server, call->operation->Request(call->number), timeout, call);
  }
}

void CallQueue::SendAgain(const CallPointer& call) {
  {
    MutexLock lock(mutex_);
    lanes_[call->server].again.push_back(call);
  }
  Pump(call->server);
}

void CallQueue::Arrived(Call& call) {
  if (!call.in_transit.has_value()) return;
  lanes_[call.server].transit.OnArrived(*call.in_transit, call.began, transport_->Now());
  call.in_transit.reset();
}

void CallQueue::Lost(Call& call, Time now) {
  if (!call.in_transit.has_value()) return;
  lanes_[call.server].transit.OnLost(*call.in_transit, now);
  call.in_transit.reset();
}

void CallQueue::OnAccepted(const CallPointer& call) {
  {
    MutexLock lock(mutex_);
    Arrived(*call);
  }
  Pump(call->server);
}

std::optional<Duration> CallQueue::OnMissing(const CallPointer& call, const std::string& missing) {
  const Time now = transport_->Now();
  if (!missing.empty() && options_.goes_on && options_.goes_on()) call->limited_from = now;
  const Duration left = options_.retry.total - (now - call->limited_from);
  MutexLock lock(mutex_);
  if (!missing.empty()) {
    call->waiting = missing;
    RetryOf(*call).OnTold(missing);
  }
  if (!call->run->status.ok() || left <= Duration::zero()) return std::nullopt;
  return std::min(left, options_.attempt_timeout);
}

void CallQueue::OnDone(const CallPointer& call, absl::Status status, const TransportReply& reply) {
  if (status.ok()) {
    status = call->operation->TakeReply(call->number, reply);
    if (!absl::IsUnavailable(status)) return Finish(call, status);
  }
  const RetryDecision decision = Decide(call, status);
  if (!decision.error.ok()) return Finish(call, decision.error);
  if (decision.delay == Duration::zero()) return SendAgain(call);
  if (options_.on_unreached && absl::IsUnavailable(status)) options_.on_unreached();
  transport_->CallAfter(decision.delay, [this, call] { Resume(call); });
  // The request is not in flight any more, so others may go. This matters if the server's memory is
  // full: it refuses all requests but one, which may be among those that wait here.
  Pump(call->server);
}

RetryCore& CallQueue::RetryOf(Call& call) {
  if (!call.retry.has_value()) {
    call.retry.emplace(options_.retry, RandomStream(jitter_.NextU64(), RandomPurpose::kRetry));
  }
  return *call.retry;
}

RetryDecision CallQueue::Decide(const CallPointer& call, const absl::Status& status) {
  const Time now = transport_->Now();
  const bool wanted = call->operation->IsWanted();
  MutexLock lock(mutex_);
  Lost(*call, now);
  if (!call->run->status.ok()) return {call->run->status, {}};
  if (!wanted) return {absl::UnavailableError(status.message()), {}};
  const RetryDecision decision =
      RetryOf(*call).OnFailure(status, now - call->attempt_began, now - call->limited_from);
  call->waiting = call->retry->told();
  return decision;
}

void CallQueue::Resume(const CallPointer& call) {
  absl::Status status;
  {
    MutexLock lock(mutex_);
    status = call->run->status;
  }
  status.ok() ? SendAgain(call) : Finish(call, status);
}

void CallQueue::Finish(const CallPointer& call, const absl::Status& status) {
  Ends ends;
  {
    MutexLock lock(mutex_);
    Arrived(*call);
    lanes_[call->server].in_flight.erase(call->place);
    if (!status.ok() && call->run->status.ok()) {
      call->run->status = Annotate(status, call->operation->Describe(call->number));
      changed_.NotifyAll();
    }
    TakeOff(*call->run, ends);
  }
  Tell(ends);
  Pump(call->server);
}

bool CallQueue::WaitUntil(const Ticket& ticket, bool (Run::*done)() const, Time deadline) {
  const auto is_done = [&] {
    MutexLock lock(mutex_);
    return (ticket.run_.get()->*done)();
  };
  if (!is_done()) transport_->Drive(is_done, deadline);
  MutexLock lock(mutex_);
  while (!(ticket.run_.get()->*done)()) {
    if (deadline == Time::max()) {
      changed_.Wait(mutex_);
    } else if (!changed_.WaitUntil(mutex_, deadline)) {
      return (ticket.run_.get()->*done)();
    }
  }
  return true;
}

bool CallQueue::IsOver(const Ticket& ticket) const {
  if (ticket.run_ == nullptr) return true;
  MutexLock lock(mutex_);
  return ticket.run_->over();
}

absl::Status CallQueue::Wait(const Ticket& ticket, Time deadline) {
  if (ticket.run_ == nullptr) return absl::InvalidArgumentError("waiting for an empty ticket");
  const bool over = WaitUntil(ticket, &Run::over, deadline);
  MutexLock lock(mutex_);
  if (over) return ticket.run_->status;
  return absl::DeadlineExceededError(
      absl::StrCat("the call was not done by the deadline; ", FirstWaiting()));
}

void CallQueue::Settle(const Ticket& ticket) {
  if (ticket.run_ != nullptr) WaitUntil(ticket, &Run::settled, Time::max());
}

std::string CallQueue::Waiting() const {
  MutexLock lock(mutex_);
  return FirstWaiting();
}

std::string CallQueue::FirstWaiting() const {
  CallPointer first;
  for (const Lane& lane : lanes_) {
    for (const CallPointer& call : lane.in_flight) {
      const bool earlier = first == nullptr || call->sequence < first->sequence;
      if (!call->waiting.empty() && earlier) first = call;
    }
  }
  return first == nullptr ? "" : first->waiting;
}

void CallQueue::MoveServer(uint32_t server, const ServerEndpoint& endpoint) {
  transport_->MoveServer(server, endpoint);
  MutexLock lock(mutex_);
  lanes_[server].transit.Forget();
}

void CallQueue::Cancel() {
  Ends ends;
  {
    MutexLock lock(mutex_);
    cancelled_ = true;
    const absl::Status cancelled = absl::CancelledError("the client was cancelled");
    const auto cancel = [&](const CallPointer& call) {
      if (call->run->status.ok()) call->run->status = cancelled;
    };
    for (Lane& lane : lanes_) {
      std::for_each(lane.in_flight.begin(), lane.in_flight.end(), cancel);
      for (const CallPointer& call : lane.waiting) {
        cancel(call);
        TakeOff(*call->run, ends);
      }
      lane.waiting.clear();
    }
    changed_.NotifyAll();
  }
  Tell(ends);
  transport_->Cancel();
}

}  // namespace leeway
