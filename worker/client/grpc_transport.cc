#include "worker/client/grpc_transport.h"

#include <chrono>
#include <utility>

#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>

#include "common/channel.h"
#include "common/grpc_status.h"

namespace leeway {
namespace {

gpr_timespec In(Duration delay) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(delay).count();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(us, GPR_TIMESPAN));
}

}  // namespace

struct GrpcTransport::Event {
  virtual ~Event() = default;
  virtual void Run() = 0;
  virtual void BreakOff() = 0;
};

struct GrpcTransport::UnaryEvent : Event {
  void Run() override { done(FromGrpc(status), std::move(reply)); }
  // Also before the call has started: it then fails at once.
  void BreakOff() override { context.TryCancel(); }

  grpc::ClientContext context;
  grpc::Status status;
  grpc::ByteBuffer reply;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  Done done;
};

struct GrpcTransport::TimerEvent : Event {
  void Run() override { callback(); }
  void BreakOff() override { alarm.Cancel(); }

  grpc::Alarm alarm;
  std::function<void()> callback;
};

GrpcTransport::GrpcTransport(const std::vector<std::shared_ptr<grpc::Channel>>& channels) {
  for (const auto& channel : channels) {
    stubs_.push_back(std::make_unique<grpc::GenericStub>(channel));
  }
  thread_ = std::thread([this] { Loop(); });
}

GrpcTransport::~GrpcTransport() { Close(); }

void GrpcTransport::CallUnary(uint32_t server, const std::string& method,
                              const grpc::ByteBuffer& request, Duration timeout, Done done) {
  auto* event = new UnaryEvent;
  event->done = std::move(done);
  event->context.set_deadline(In(timeout));
  event->reader = stubs_[server]->PrepareUnaryCall(&event->context, method, request, &queue_);
  // Past Finish() the event may be gone.
  auto* const reader = event->reader.get();
  {
    MutexLock lock(mutex_);
    active_.insert(event);
    if (cancelled_) event->BreakOff();
  }
  // Outside the lock: this may write the request to the socket.
  reader->StartCall();
  reader->Finish(&event->reply, &event->status, static_cast<Event*>(event));
}

void GrpcTransport::CallAfter(Duration delay, std::function<void()> callback) {
  auto* event = new TimerEvent;
  event->callback = std::move(callback);
  MutexLock lock(mutex_);
  active_.insert(event);
  event->alarm.Set(&queue_, In(cancelled_ ? Duration::zero() : delay), static_cast<Event*>(event));
}

void GrpcTransport::Cancel() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  for (Event* event : active_) event->BreakOff();
}

void GrpcTransport::Close() {
  Cancel();
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    closed_ = true;
    while (!active_.empty()) idle_.Wait(mutex_);
  }
  queue_.Shutdown();
  thread_.join();
}

void GrpcTransport::Loop() {
  void* tag = nullptr;
  bool ok = false;
  // `ok` is false for an alarm that was cancelled; a unary call's outcome is in its status.
  while (queue_.Next(&tag, &ok)) {
    auto* event = static_cast<Event*>(tag);
    {
      // Nothing to do: orders the caller's writes before the callback where ThreadSanitizer sees
      // it. The queue's own hand-over is inside a library that is not instrumented.
      MutexLock lock(mutex_);
    }
    event->Run();
    Remove(event);
  }
}

void GrpcTransport::Remove(Event* event) {
  {
    MutexLock lock(mutex_);
    active_.erase(event);
    if (active_.empty()) idle_.NotifyAll();
  }
  delete event;
}

std::unique_ptr<Transport> MakeGrpcTransport(const std::vector<std::string>& servers) {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (const std::string& address : servers) channels.push_back(MakeChannel(address));
  return std::make_unique<GrpcTransport>(channels);
}

}  // namespace leeway
