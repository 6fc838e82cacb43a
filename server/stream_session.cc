#include "server/stream_session.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/frame_head.h"
#include "common/grpc_status.h"
#include "common/local_sockets.h"
#include "common/retry_hint.h"
#include "common/status.h"

namespace leeway {
namespace {

// Requests of one stream that may wait for their answers; beyond, it is not read from.
constexpr size_t kUnansweredMax = 4096;
// What a frame of requests may be: so that no stream is served for long before it is the next one's
// turn, and little is kept by what is kept of it. Payloads of one frame, beside the largest.
constexpr uint64_t kRequestBytesMax = 1 << 20;
constexpr int kRequestsMax = 4096;

// Of the floats that requests bring, wherever they lie.
uint64_t BytesOf(const v1::RequestFrame& head) {
  uint64_t bytes = 0;
  for (const v1::StreamRequest& request : head.requests()) {
    bytes += request.payload_bytes() + request.shared().bytes();
  }
  return bytes;
}

// Not OK: a frame, with a payload of `bytes`, is more than a frame may be, or not what it says.
absl::Status CheckFrame(const v1::RequestFrame& head, uint64_t bytes) {
  uint64_t largest = 0;
  uint64_t left = bytes;
  for (const v1::StreamRequest& request : head.requests()) {
    if (request.payload_bytes() > left) {
      return absl::DataLossError("RequestFrame: the payload breaks off");
    }
    left -= request.payload_bytes();
    largest = std::max<uint64_t>(largest, request.payload_bytes());
  }
  const bool good = head.requests_size() <= kRequestsMax && bytes <= kRequestBytesMax + largest;
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("RequestFrame: ", head.requests_size(), " requests, ", bytes, " bytes"));
}

}  // namespace

StreamSession::StreamSession(ParameterService* service, ServerQueue* queue)
    : service_(service),
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
  // There will be no stream any more.
  if (!ok) return OnEnded(true);
  const auto self = shared_from_this();
  Await(service_, queue_);
  TuneLocalSockets(context_.peer(), /*sole=*/true);
  last_heard_ = std::chrono::steady_clock::now().time_since_epoch().count();
  service_->streams().Add(shared_from_this());
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
  Take(bytes);
  FlushSoon();
}

void StreamSession::OnWritten(bool ok) {
  // Another thread may take the stream's end as soon as it is asked for.
  const auto self = shared_from_this();
  {
    MutexLock lock(mutex_);
    writing_ = false;
    answers_.OnWritten();
    if (!ok) broken_ = true;
    // A worker that waits on says nothing, and takes what it is told.
    if (ok) last_heard_ = std::chrono::steady_clock::now().time_since_epoch().count();
    if (!taking_) ReadOn();
    EndWhenIdle();
  }
  FlushSoon();
}

void StreamSession::ReadOn() {
  if (reading_ || broken_ || unanswered_.size() > kUnansweredMax) return;
  if (answers_.beyond(service_->unread_bytes_max())) return;
  reading_ = true;
  stream_.Read(&received_, read_.Tag());
}

void StreamSession::Take(const grpc::ByteBuffer& bytes) {
  const Time now = std::chrono::steady_clock::now();
  last_heard_ = now.time_since_epoch().count();
  const FrameHead<v1::RequestFrame> head;
  auto frame = DecodeRequestFrame(bytes, *head);
  absl::Status status = frame.status();
  if (status.ok()) status = CheckFrame(*head, frame->left());
  if (status.ok()) {
    if (frame->left() > 0) {
      frame->SetOwner(service_->budget().Hold(bytes.Length(), frame->owner()));
    }
    ServerQueue::Took(BytesOf(*head));
    if (head->has_offer()) TakeOffer(*head);
    Release(*head);
    for (const v1::StreamRequest& request : head->requests()) {
      status = Ask(request, *frame, now);
      if (!status.ok()) break;
    }
  }
  MutexLock lock(mutex_);
  taking_ = false;
  // A stream that cannot be read on: its worker begins another.
  if (!status.ok()) {
    spdlog::warn("a stream from {} ends: {}", context_.peer(), std::string(status.message()));
    broken_ = true;
    end_ = std::move(status);
    // The status would wait for what this worker may never read.
    if (writing_) context_.TryCancel();
  }
  ReadOn();
  EndWhenIdle();
}

void StreamSession::Release(const v1::RequestFrame& head) {
  if (head.released().empty()) return;
  MutexLock lock(mutex_);
  for (uint64_t id : head.released()) answers_.Release(id);
}

absl::StatusOr<std::shared_ptr<Shard>> StreamSession::FindShard(const v1::ExchangeHeader& header,
                                                                Time now) {
  RETURN_IF_ERROR(service_->CheckLease(now));
  auto shard = shard_.lock();
  const bool known = shard != nullptr && !shard->closed() && header.job() == job_ &&
                     header.generation() == generation_ && header.incarnation() == incarnation_ &&
                     shard->store().Has(header.block());
  if (known) return shard;
  ASSIGN_OR_RETURN(shard, service_->Find(header));
  shard_ = shard;
  job_ = header.job();
  generation_ = header.generation();
  // A rank that is none is refused by the shard.
  if (shard->IsRank(header.rank())) LearnOwner(header.rank(), header.incarnation());
  return shard;
}

void StreamSession::LearnOwner(uint32_t rank, uint64_t incarnation) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = !rank_.has_value();
    if (first) rank_ = rank;
    // By what is said first: requests for another rank do not make it that one's.
    if (*rank_ != rank) return;
  }
  const bool newer = incarnation > std::exchange(incarnation_, std::max(incarnation_, incarnation));
  if (first || newer) service_->streams().Belongs(rank, incarnation, shared_from_this());
}

absl::Status StreamSession::Ask(const v1::StreamRequest& request, FramePayload& frame, Time now) {
  const bool push = request.method() == v1::EXCHANGE_METHOD_PUSH;
  const bool pull = request.method() == v1::EXCHANGE_METHOD_PULL;
  const Asked asked{request.id(), pull || request.method() == v1::EXCHANGE_METHOD_PUSH_PULL};
  if (request.method() == v1::EXCHANGE_METHOD_REPLICATE) return TakeReplica(request, frame);
  const auto shard = FindShard(request.header(), now);
  // A push that may have to wait for others is answered when it is held, and then the worker may
  // write into its memory. One that need not is answered when it is applied, and stays where it is.
  const bool held = push && shard.ok() && !(*shard)->waits_for_own_only();
  const bool contributes = push || request.method() == v1::EXCHANGE_METHOD_PUSH_PULL;
  // What lies in the worker's memory costs nothing here.
  const bool costs = contributes && (held || !request.has_shared());
  absl::Status status = shard.status();
  if (status.ok() && costs) status = service_->Admit(**shard, request.header());
  auto payload = PayloadOf(request, frame, held && status.ok());
  if (absl::IsDataLoss(payload.status())) return payload.status();
  {
    MutexLock lock(mutex_);
    const bool fresh = unanswered_.insert(request.id()).second && !answers_.holds(request.id());
    if (!fresh) {
      return absl::InvalidArgumentError(
          absl::StrCat("id: ", request.id(), " is that of a request before this one"));
    }
  }
  if (!payload.ok() || !status.ok()) {
    Answer(asked, payload.ok() ? status : payload.status());
    return absl::OkStatus();
  }
  Shard::Done done = [self = shared_from_this(), asked](absl::StatusOr<BlockReading> reading) {
    self->Answer(asked, std::move(reading));
  };
  switch (request.method()) {
    case v1::EXCHANGE_METHOD_PUSH:
    case v1::EXCHANGE_METHOD_PUSH_PULL:
      (*shard)->Contribute(request.header(), *std::move(payload), asked.wants_values, now,
                           std::move(done), PatienceOf(request));
      break;
    case v1::EXCHANGE_METHOD_PULL:
      (*shard)->Read(request.header(), request.latest(), now, std::move(done), PatienceOf(request));
      break;
    case v1::EXCHANGE_METHOD_INITIALIZE:
      (*shard)->Initialize(request.header(), *payload, std::move(done));
      break;
    default:
      done(absl::InvalidArgumentError(
          absl::StrCat("method: ", request.method(), " is none that this server knows")));
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

Patience StreamSession::PatienceOf(const v1::StreamRequest& request) {
  if (!request.waits_on()) return {};
  return {shared_from_this(), request.id()};
}

void StreamSession::OnMissing(uint64_t id, const std::string& missing) {
  {
    MutexLock lock(mutex_);
    // To who does not read it is not said again and again.
    if (broken_ || answers_.crowded() || !unanswered_.contains(id)) return;
    v1::StreamReply& reply = *answers_.OpenFrame().add_replies();
    reply.set_id(id);
    reply.set_accepted(true);
    reply.set_message(missing);
  }
  FlushSoon();
}

void StreamSession::Answer(const Asked& asked, absl::StatusOr<BlockReading> reading) {
  {
    MutexLock lock(mutex_);
    unanswered_.erase(asked.id);
    if (broken_) return;
    AddReply(asked, std::move(reading));
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

void StreamSession::AddReply(const Asked& asked, absl::StatusOr<BlockReading> reading) {
  v1::StreamReply& reply = *answers_.OpenFrame().add_replies();
  reply.set_id(asked.id);
  absl::Status status = reading.status();
  if (status.ok() && asked.wants_values && !reading->has_payload() &&
      !reading->header.unchanged()) {
    status = absl::InternalError("the version asked for has no values");
  }
  if (!status.ok()) {
    reply.set_code(static_cast<int32_t>(status.code()));
    reply.set_message(std::string(status.message()));
    if (const auto hint = RetryHintOf(status)) {
      reply.set_retry_after_ms(hint->count());
    }
    return;
  }
  reply.set_duplicate(reading->duplicate);
  if (!asked.wants_values) return;
  *reply.mutable_version() = std::move(reading->header);
  if (reading->has_payload()) AddValues(*reading, reply);
}

void StreamSession::AddValues(BlockReading& reading, v1::StreamReply& reply) {
  const uint64_t limit = service_->unread_bytes_max();
  const float* const raw = reading.values ? reading.values.span().data() : nullptr;
  const bool shared = raw != nullptr && memory_ != nullptr && memory_->Contains(raw);
  if (shared && answers_.may_hold(reading.values.span().size_bytes(), limit)) {
    reply.mutable_shared()->set_offset(memory_->OffsetOf(raw));
    reply.mutable_shared()->set_bytes(reading.values.span().size_bytes());
    answers_.Hold(reply.id(), std::move(reading.values));
  } else if (!answers_.AddPayload(reading.TakePayload(), limit, rank_, reply)) {
    service_->budget().CountUnread(1);
  }
}

void StreamSession::TakeBackUnread(Time now) {
  MutexLock lock(mutex_);
  const uint64_t answers = answers_.TakeBack(now, service_->unread_bytes_max(), rank_);
  if (answers > 0) service_->budget().CountUnread(answers);
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
  // Outside the lock: it may write to the socket. The stream does not end while writing.
  stream_.Write(bytes, written_.Tag());
}

void StreamSession::EndWhenIdle() {
  if (!broken_ || ending_ || reading_ || writing_ || taking_) return;
  ending_ = true;
  stream_.Finish(ToGrpc(end_), ended_.Tag());
}

void StreamSession::OnEnded(bool) {
  service_->streams().Remove(this);
  {
    MutexLock lock(mutex_);
    broken_ = true;
    // First the number, then the memory: common/shared_memory.h.
    if (memory_ != nullptr) memory_->CloseSession(session_);
    answers_.Clear();
  }
  guest_.reset();
  // Answers that are still to come hold it, too.
  self_.reset();
}

}  // namespace leeway
