#include "server/service/stream_session.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/printable.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/local_sockets.h"
#include "common/status.h"
#include "common/wire/frame_head.h"

namespace leeway {
namespace {

// The number of requests of one stream that may wait for their answers. While more requests wait,
// the server does not read from the stream.
constexpr size_t kUnansweredMax = 4096;
// Returns the total size of the values of all requests, in the frame or in shared memory.
uint64_t BytesOf(const v1::RequestFrame& head) {
  uint64_t bytes = 0;
  for (const v1::StreamRequest& request : head.requests()) {
    bytes += request.payload_bytes() + request.shared().bytes();
  }
  return bytes;
}

bool Reads(v1::ExchangeMethod method) {
  return method == v1::EXCHANGE_METHOD_PUSH_PULL || method == v1::EXCHANGE_METHOD_PULL;
}

bool Contributes(v1::ExchangeMethod method) {
  return method == v1::EXCHANGE_METHOD_PUSH_PULL || method == v1::EXCHANGE_METHOD_PUSH;
}

ShardTable::Want WantOf(const v1::StreamRequest& request) {
  // Values in the worker's memory cost nothing here, because they stay there until the answer.
  if (Contributes(request.method()) && !request.has_shared()) return ShardTable::Want::kHold;
  const bool latest = request.method() == v1::EXCHANGE_METHOD_PULL && request.latest();
  return latest ? ShardTable::Want::kLatest : ShardTable::Want::kAnswer;
}

absl::Status IsTaken(uint64_t id) {
  return absl::InvalidArgumentError(
      absl::StrCat("id: ", id, " is already used by an earlier request"));
}

}  // namespace

StreamSession::StreamSession(ParameterService* service, ServerQueue* queue)
    : service_(service),
      table_(service->table()),
      streams_(service->streams()),
      queue_(queue),
      guest_(std::in_place, queue),
      stream_(&context_),
      accepted_(this, &StreamSession::OnAccepted),
      read_(this, &StreamSession::OnRead),
      written_(this, &StreamSession::OnWritten),
      ended_(this, &StreamSession::OnEnded) {}

void StreamSession::Await(ParameterService* service, ServerQueue* queue) {
  queue->IfRunning([&] {
    std::shared_ptr<StreamSession> session(new StreamSession(service, queue));
    session->self_ = session;
    service->RequestExchange(&session->context_, &session->stream_, queue->get(), queue->get(),
                             session->accepted_.Tag());
  });
}

void StreamSession::OnAccepted(bool ok) {
  // If `ok` is false, the queue is stopping and no stream will come.
  if (!ok) return OnEnded(true);
  const auto self = shared_from_this();
  Await(service_, queue_);
  static const CalledMethod kMethod("leeway.v1.ParameterServer.Exchange");
  if (auto caller = queue_->Admit(context_, kMethod); caller.ok()) {
    caller_ = *caller;
  } else {
    MutexLock lock(mutex_);
    broken_ = true;
    end_ = std::move(caller).status();
    return EndWhenIdle();
  }
  TuneLocalSockets(context_.peer(), /*sole=*/true);
  last_heard_ = std::chrono::steady_clock::now().time_since_epoch().count();
  streams_.Add(shared_from_this());
  MutexLock lock(mutex_);
  ReadOn();
}

void StreamSession::OnRead(bool ok) {
  const auto self = shared_from_this();
  grpc::ByteBuffer bytes;
  {
    MutexLock lock(mutex_);
    reading_ = false;
    if (!ok) broken_ = true;
    if (broken_) return EndWhenIdle();
    taking_ = true;
    bytes.Swap(&received_);
  }
  const Time now = std::chrono::steady_clock::now();
  last_heard_ = now.time_since_epoch().count();
  const FrameHead<v1::RequestFrame> head;
  auto frame = DecodeRequestFrame(bytes, *head);
  absl::Status status = frame.status();
  if (status.ok()) {
    if (frame->left() > 0) {
      frame->SetOwner(table_.budget().Hold(bytes.Length(), frame->owner()));
    }
    TakeHead(*head);
    for (const v1::StreamRequest& request : head->requests()) {
      status = Ask(request, *frame, now);
      if (!status.ok()) break;
    }
  }
  EndFrame(std::move(status));
  FlushSoon();
}

void StreamSession::EndFrame(absl::Status status) {
  MutexLock lock(mutex_);
  taking_ = false;
  // This stream cannot be read any further. Its worker begins another one.
  if (!status.ok()) {
    spdlog::warn("the stream from {} ends: {}", context_.peer(), std::string(status.message()));
    broken_ = true;
    end_ = std::move(status);
    // Without this the status would wait behind a frame that the worker may never read.
    if (writing_) context_.TryCancel();
  }
  ReadOn();
  EndWhenIdle();
}

void StreamSession::OnWritten(bool ok) {
  // Another thread may end the stream as soon as that is possible.
  const auto self = shared_from_this();
  {
    MutexLock lock(mutex_);
    writing_ = false;
    answers_.OnWritten();
    if (!ok) broken_ = true;
    // A waiting worker sends nothing but reads the messages of the server, so a written frame also
    // shows that the worker is alive.
    if (ok) last_heard_ = std::chrono::steady_clock::now().time_since_epoch().count();
    if (!taking_) ReadOn();
    EndWhenIdle();
  }
  FlushSoon();
}

void StreamSession::ReadOn() {
  if (reading_ || broken_ || unanswered_.size() > kUnansweredMax) return;
  if (answers_.beyond(streams_.unread_bytes_max())) return;
  reading_ = true;
  stream_.Read(&received_, read_.Tag());
}

void StreamSession::TakeHead(const v1::RequestFrame& head) {
  ServerQueue::Took(BytesOf(head));
  if (head.has_offer()) TakeOffer(head);
  if (head.released().empty()) return;
  MutexLock lock(mutex_);
  for (uint64_t id : head.released()) answers_.Release(id);
}

void StreamSession::LearnOwner() {
  sender_ = admitted_.sender;
  const auto [rank, incarnation] = *sender_;
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = !rank_.has_value();
    if (first) rank_ = rank;
    // The first request determines the owner. Later requests for another rank do not change the
    // owner.
    if (*rank_ != rank) return;
  }
  const bool newer = incarnation > std::exchange(incarnation_, std::max(incarnation_, incarnation));
  if (first || newer) streams_.Belongs(rank, incarnation, shared_from_this());
}

absl::Status StreamSession::Ask(const v1::StreamRequest& request, FramePayload& frame, Time now) {
  const v1::ExchangeMethod method = request.method();
  if (method == v1::EXCHANGE_METHOD_REPLICATE) return TakeReplica(request, frame);
  RETURN_IF_ERROR(CheckRank(caller_, request.header().rank()));
  const Asked asked{request.id(), Reads(method)};
  const auto shard = table_.Admit(request.header(), WantOf(request), &admitted_);
  if (admitted_.sender != sender_) LearnOwner();
  auto payload =
      request.has_shared() ? SharedPayloadOf(request) : frame.Take(request.payload_bytes());
  bool fresh = false;
  {
    MutexLock lock(mutex_);
    fresh = unanswered_.insert(asked.id).second && !answers_.holds(asked.id);
  }
  if (!fresh) return IsTaken(asked.id);
  if (!payload.ok() || !shard.ok()) {
    Answer(asked, payload.ok() ? shard.status() : payload.status());
    return absl::OkStatus();
  }
  Shard::Done done = [self = shared_from_this(), asked](absl::StatusOr<BlockReading> reading) {
    if (reading.ok() && !self->table_.leased()) reading = ShardTable::LeaseIsOver();
    self->Answer(asked, std::move(reading));
  };
  Patience patience;
  if (request.waits_on()) patience = {shared_from_this(), request.id()};
  if (Contributes(method)) {
    (*shard)->Contribute(request.header(), *std::move(payload), asked.wants_values, now,
                         std::move(done), std::move(patience));
  } else if (method == v1::EXCHANGE_METHOD_PULL) {
    (*shard)->Read(request.header(), ReadKindOf(request), now, std::move(done),
                   std::move(patience));
  } else if (method == v1::EXCHANGE_METHOD_INITIALIZE) {
    (*shard)->Initialize(request.header(), *payload, std::move(done));
  } else {
    done(absl::InvalidArgumentError(
        absl::StrCat("method: ", method, " is not known to this server")));
  }
  if (request.wants_acceptance()) Acknowledge(request);
  return absl::OkStatus();
}

void StreamSession::Acknowledge(const v1::StreamRequest& request) {
  MutexLock lock(mutex_);
  if (!unanswered_.contains(request.id())) return;
  v1::StreamReply& reply = *answers_.OpenFrame().add_replies();
  reply.set_id(request.id());
  reply.set_accepted(true);
}

void StreamSession::OnMissing(uint64_t id, const std::string& missing) {
  {
    MutexLock lock(mutex_);
    // A client that does not read is not reminded repeatedly.
    if (broken_ || answers_.crowded() || !unanswered_.contains(id)) return;
    v1::StreamReply& reply = *answers_.OpenFrame().add_replies();
    reply.set_id(id);
    reply.set_accepted(true);
    reply.set_message(Printable(missing));
  }
  FlushSoon();
}

void StreamSession::Answer(const Asked& asked, absl::StatusOr<BlockReading> reading) {
  {
    MutexLock lock(mutex_);
    unanswered_.erase(asked.id);
    if (broken_) return;
    const uint64_t limit = streams_.unread_bytes_max();
    if (!answers_.Add(asked, std::move(reading), limit, rank_)) table_.budget().CountUnread(1);
    if (!taking_) ReadOn();
    if (taking_ && !answers_.worth_a_frame()) return;
  }
  FlushSoon();
}

void StreamSession::FlushSoon() {
  {
    MutexLock lock(mutex_);
    if (!answers_.worth_a_frame()) {
      if (flush_due_) return;
      flush_due_ = ServerQueue::AtRest([self = shared_from_this()] { self->Flush(); });
      if (flush_due_) return;
    }
  }
  Flush();
}

void StreamSession::TakeBackUnread(Time now) {
  MutexLock lock(mutex_);
  const uint64_t answers = answers_.TakeBack(now, streams_.unread_bytes_max(), rank_);
  if (answers > 0) table_.budget().CountUnread(answers);
}

void StreamSession::End() {
  MutexLock lock(mutex_);
  if (ending_) return;
  broken_ = true;
  context_.TryCancel();
  EndWhenIdle();
}

void StreamSession::Flush() {
  grpc::ByteBuffer bytes;
  {
    MutexLock lock(mutex_);
    flush_due_ = false;
    if (writing_ || broken_ || answers_.empty()) return;
    bytes = answers_.BeginWrite(std::chrono::steady_clock::now());
    writing_ = true;
  }
  // This runs without the lock, because it may write to the socket. The stream does not end during
  // a write.
  stream_.Write(bytes, written_.Tag());
}

void StreamSession::EndWhenIdle() {
  if (!broken_ || ending_ || reading_ || writing_ || taking_) return;
  ending_ = true;
  stream_.Finish(ToGrpc(end_), ended_.Tag());
}

void StreamSession::OnEnded(bool) {
  streams_.Remove(this);
  {
    MutexLock lock(mutex_);
    broken_ = true;
    // The session must be closed before its memory is released; see common/shm/shared_memory.h.
    if (answers_.memory() != nullptr) answers_.memory()->CloseSession(session_);
    answers_.Clear();
  }
  guest_.reset();
  // Answers that are still to come keep the session alive, too.
  self_.reset();
}

}  // namespace leeway
