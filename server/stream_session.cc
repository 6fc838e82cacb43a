#include "server/stream_session.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/retry_hint.h"
#include "common/status.h"

namespace leeway {
namespace {

// A frame takes no more replies from here on: the worker can copy the first while the next is under
// way.
constexpr size_t kFrameBytes = 256 << 10;
constexpr int kFrameReplies = 512;
// Requests of one stream that may wait for their answers; beyond, it is not read from.
constexpr size_t kUnansweredMax = 4096;
// Frames of answers that wait for the worker to read; beyond, or beyond limits.unread_bytes, it is
// not read from: a worker that asks and does not read does not make the server hold ever more
// versions.
constexpr size_t kFramesMax = 256;
// A frame that has not left for so long stands still: its worker is stopped, or does not read. What
// waits behind it beyond limits.unread_bytes is taken back, and refused. Until then answers are but
// references to versions, which mostly are there anyway; a slow link moves a frame in this time.
constexpr Duration kStalledAfter = std::chrono::seconds(5);
constexpr std::chrono::milliseconds kAskAgainAfter(1000);
// What a frame of requests may be: so that no stream is served for long before it is the next one's
// turn, and little is kept by what is kept of it. Payloads of one frame, beside the largest.
constexpr uint64_t kRequestBytesMax = 1 << 20;
constexpr int kRequestsMax = 4096;
// Versions that a worker may be reading in the server's memory; beyond, they travel in frames.
constexpr size_t kHeldMax = 4096;
// Answers so small leave together, a frame for each worker, when the frame that released them has
// been taken: the last contribution to many small blocks releases all workers block after block.
constexpr size_t kTogetherBytes = 16 << 10;

// While this thread takes a frame: other streams that have such answers.
thread_local std::vector<std::shared_ptr<StreamSession>>* released_together = nullptr;

// Not OK: a frame is more than a frame may be.
absl::Status CheckFrame(const v1::RequestFrame& head, uint64_t bytes) {
  uint64_t largest = 0;
  for (const v1::StreamRequest& request : head.requests()) {
    largest = std::max<uint64_t>(largest, request.payload_bytes());
  }
  const bool good = head.requests_size() <= kRequestsMax && bytes <= kRequestBytesMax + largest;
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("RequestFrame: ", head.requests_size(), " requests, ", bytes, " bytes"));
}

bool IsSmall(const absl::StatusOr<BlockReading>& reading) {
  if (!reading.ok()) return true;
  const size_t values = reading->values ? reading->values.span().size_bytes() : 0;
  return values + (reading->encoded ? reading->encoded->size() : 0) <= kTogetherBytes;
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
    service->streams().Add(session);
    service->RequestExchange(&session->context_, &session->stream_, queue->get(), queue->get(),
                             &session->accepted_);
  });
}

void StreamSession::OnAccepted(bool ok) {
  // There will be no stream any more.
  if (!ok) return OnEnded(true);
  Await(service_, queue_);
  MutexLock lock(mutex_);
  ReadOn();
}

void StreamSession::OnRead(bool ok) {
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
  Flush();
}

void StreamSession::OnWritten(bool ok) {
  {
    MutexLock lock(mutex_);
    writing_ = stalled_ = false;
    unread_bytes_ -= std::exchange(writing_bytes_, 0);
    if (!ok) broken_ = true;
    if (!taking_) ReadOn();
    EndWhenIdle();
  }
  Flush();
}

void StreamSession::ReadOn() {
  const bool unread = frames_.size() > kFramesMax || unread_bytes_ > service_->unread_bytes_max();
  if (reading_ || broken_ || unanswered_.size() > kUnansweredMax || unread) return;
  reading_ = true;
  stream_.Read(&received_, &read_);
}

void StreamSession::Take(const grpc::ByteBuffer& bytes) {
  const Time now = std::chrono::steady_clock::now();
  auto frame = DecodeRequestFrame(bytes, head_);
  absl::Status status = frame.status();
  if (status.ok()) status = CheckFrame(head_, frame->left());
  if (status.ok()) {
    if (frame->left() > 0) {
      frame->SetOwner(service_->budget().Hold(bytes.Length(), frame->owner()));
    }
    if (head_.has_offer()) TakeOffer(head_);
    Release(head_);
    std::vector<std::shared_ptr<StreamSession>> others;
    released_together = &others;
    for (const v1::StreamRequest& request : head_.requests()) {
      status = Ask(request, *frame, now);
      if (!status.ok()) break;
    }
    released_together = nullptr;
    for (const auto& other : others) other->Flush();
  }
  MutexLock lock(mutex_);
  taking_ = false;
  // A stream that cannot be read on: its worker begins another.
  if (!status.ok()) {
    broken_ = true;
    context_.TryCancel();
  }
  ReadOn();
  EndWhenIdle();
}

void StreamSession::Release(const v1::RequestFrame& head) {
  if (head.released().empty()) return;
  MutexLock lock(mutex_);
  for (uint64_t id : head.released()) held_.erase(id);
}

absl::StatusOr<std::shared_ptr<Shard>> StreamSession::FindShard(const v1::ExchangeHeader& header,
                                                                Time now) {
  RETURN_IF_ERROR(service_->CheckLease(now));
  auto shard = shard_.lock();
  const bool known = shard != nullptr && !shard->closed() && header.job() == job_ &&
                     header.generation() == generation_ && shard->store().Has(header.block());
  if (known) return shard;
  ASSIGN_OR_RETURN(shard, service_->Find(header));
  shard_ = shard;
  job_ = header.job();
  generation_ = header.generation();
  // Nobody's; refused by the shard.
  if (!shard->IsRank(header.rank())) return shard;
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = !std::exchange(rank_, header.rank()).has_value();
  }
  if (first) service_->streams().Belongs(header.rank(), shared_from_this());
  return shard;
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
    const bool fresh = unanswered_.insert(request.id()).second && !held_.contains(request.id());
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
                           std::move(done));
      break;
    case v1::EXCHANGE_METHOD_PULL:
      (*shard)->Read(request.header(), request.latest(), now, std::move(done));
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
  v1::StreamReply& reply = *OpenFrame().head.add_replies();
  reply.set_id(request.id());
  reply.set_accepted(true);
}

void StreamSession::Answer(const Asked& asked, absl::StatusOr<BlockReading> reading) {
  const bool waits = released_together != nullptr && IsSmall(reading);
  {
    MutexLock lock(mutex_);
    unanswered_.erase(asked.id);
    if (broken_) return;
    AddReply(asked, std::move(reading));
    if (taking_) return;
    ReadOn();
    if (waits) {
      if (!std::exchange(flush_due_, true)) released_together->push_back(shared_from_this());
      return;
    }
  }
  Flush();
}

void StreamSession::AddReply(const Asked& asked, absl::StatusOr<BlockReading> reading) {
  Frame& frame = OpenFrame();
  v1::StreamReply& reply = *frame.head.add_replies();
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
      reply.set_retry_after_ms(std::chrono::ceil<std::chrono::milliseconds>(*hint).count());
    }
    return;
  }
  reply.set_duplicate(reading->duplicate);
  if (!asked.wants_values) return;
  *reply.mutable_version() = std::move(reading->header);
  if (reading->has_payload()) AddValues(asked.id, *reading, reply);
}

void StreamSession::AddValues(uint64_t id, BlockReading& reading, v1::StreamReply& reply) {
  const float* const raw = reading.values ? reading.values.span().data() : nullptr;
  const bool shared = raw != nullptr && memory_ != nullptr && memory_->Contains(raw);
  if (shared && held_.size() < kHeldMax) {
    reply.mutable_shared()->set_offset(memory_->OffsetOf(raw));
    reply.mutable_shared()->set_bytes(reading.values.span().size_bytes());
    held_[id] = std::move(reading.values);
    return;
  }
  // The frame refers to the version's own memory and keeps it until it is sent.
  const PayloadBytes payload = reading.TakePayload();
  if (stalled_ && unread_bytes_ + payload.bytes.size() > service_->unread_bytes_max()) {
    return RefuseUnread(reply);
  }
  unread_bytes_ += payload.bytes.size();
  reply.set_payload_bytes(payload.bytes.size());
  frames_.back().payload.Append(payload.bytes, payload.owner);
}

void StreamSession::RefuseUnread(v1::StreamReply& reply) {
  const uint64_t id = reply.id();
  reply.Clear();
  reply.set_id(id);
  reply.set_code(static_cast<int32_t>(absl::StatusCode::kResourceExhausted));
  reply.set_message(absl::StrCat(
      rank_ ? absl::StrCat("worker ", *rank_) : "the worker",
      " does not read its answers, and more of them wait than may (limits.unread_bytes); send the "
      "same again"));
  reply.set_retry_after_ms(kAskAgainAfter.count());
  service_->budget().CountUnread(1);
}

void StreamSession::TakeBackUnread(Time now) {
  MutexLock lock(mutex_);
  const uint64_t limit = service_->unread_bytes_max();
  if (!writing_ || now - write_began_ < kStalledAfter || unread_bytes_ <= limit) return;
  stalled_ = true;
  // The newest first: what is about to leave stays.
  for (auto frame = frames_.rbegin(); frame != frames_.rend() && unread_bytes_ > limit; ++frame) {
    if (frame->payload.bytes() == 0) continue;
    unread_bytes_ -= frame->payload.bytes();
    frame->payload = FrameWriter();
    for (v1::StreamReply& reply : *frame->head.mutable_replies()) {
      if (reply.payload_bytes() > 0) RefuseUnread(reply);
    }
  }
}

void StreamSession::End() {
  MutexLock lock(mutex_);
  if (ending_) return;
  broken_ = true;
  context_.TryCancel();
  EndWhenIdle();
}

StreamSession::Frame& StreamSession::OpenFrame() {
  const bool full = !frames_.empty() && (frames_.back().payload.bytes() >= kFrameBytes ||
                                         frames_.back().head.replies_size() >= kFrameReplies);
  if (frames_.empty() || full) frames_.emplace_back();
  return frames_.back();
}

void StreamSession::Flush() {
  grpc::ByteBuffer bytes;
  {
    MutexLock lock(mutex_);
    flush_due_ = false;
    if (writing_ || taking_ || broken_ || frames_.empty()) return;
    writing_bytes_ = frames_.front().payload.bytes();
    bytes = frames_.front().payload.Finish(frames_.front().head);
    frames_.pop_front();
    writing_ = true;
    write_began_ = std::chrono::steady_clock::now();
  }
  // Outside the lock: it may write to the socket. The stream does not end while writing.
  stream_.Write(bytes, &written_);
}

void StreamSession::EndWhenIdle() {
  if (!broken_ || ending_ || reading_ || writing_ || taking_) return;
  ending_ = true;
  stream_.Finish(grpc::Status::OK, &ended_);
}

void StreamSession::OnEnded(bool) {
  {
    MutexLock lock(mutex_);
    broken_ = true;
    frames_.clear();
    // First the number, then the memory: common/shared_memory.h.
    if (memory_ != nullptr) memory_->CloseSession(session_);
    held_.clear();
  }
  guest_.reset();
  // Answers that are still to come hold it, too.
  self_.reset();
}

}  // namespace leeway
