#include "server/service/unread_answers.h"

#include <chrono>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/printable.h"
#include "common/retry_hint.h"
#include "common/rpc/queue_poller.h"

namespace leeway {
namespace {

// A frame of this size, or with this number of replies, gets no more replies, so that the worker
// can copy one frame while the next frame is in flight.
constexpr size_t kAnswerFrameBytes = 256 << 10;
constexpr int kFrameReplies = 512;
// An answer of kLargeBytes leaves at once. Smaller answers leave when they have kTogetherBytes or
// kTogetherReplies together.
constexpr uint64_t kLargeBytes = 16 << 10;
constexpr uint64_t kTogetherBytes = QueuePoller::kSmallBytes;
constexpr int kTogetherReplies = 16;
// The number of frames that may wait to leave, however small they are.
constexpr size_t kFramesMax = 256;
// The number of versions that a worker may be reading in the server's memory, however small they
// are.
constexpr size_t kHeldMax = 4096;

// A frame counts as stalled if it has not left after this time plus the time that its transfer
// takes. gRPC does not report how much of a frame has left. A frame of 64 MiB needs 54 s on a link
// of 10 Mbit/s; the limit also allows for two streams that share such a link.
constexpr Duration kStalledAfter = std::chrono::seconds(5);
constexpr uint64_t kSlowestBytesPerSecond = 512 << 10;

Duration PatienceFor(uint64_t bytes) {
  return kStalledAfter + std::chrono::milliseconds(bytes * 1000 / kSlowestBytesPerSecond);
}

// The retry hint. It is long because a worker that has not read for seconds will not read at once.
constexpr std::chrono::milliseconds kReadAfter(1000);

std::string WorkerName(std::optional<uint32_t> rank) {
  return rank ? absl::StrCat("worker ", *rank) : "the worker";
}

void Refuse(std::optional<uint32_t> rank, v1::StreamReply& reply) {
  const uint64_t id = reply.id();
  reply.Clear();
  reply.set_id(id);
  reply.set_code(static_cast<int32_t>(absl::StatusCode::kResourceExhausted));
  reply.set_message(
      absl::StrCat(WorkerName(rank),
                   " does not read its answers, and more answers wait than the limit allows "
                   "(limits.unread_bytes); send the request again"));
  reply.set_retry_after_ms(kReadAfter.count());
}

void SayStatus(const absl::Status& status, v1::StreamReply& reply) {
  reply.set_code(static_cast<int32_t>(status.code()));
  reply.set_message(Printable(status.message()));
  if (const auto hint = RetryHintOf(status)) reply.set_retry_after_ms(hint->count());
}

}  // namespace

v1::ReplyFrame& UnreadAnswers::OpenFrame() {
  const bool full = !frames_.empty() && (frames_.back().payload.bytes() >= kAnswerFrameBytes ||
                                         frames_.back().head->replies_size() >= kFrameReplies);
  if (frames_.empty() || full) frames_.emplace_back();
  return *frames_.back().head;
}

void UnreadAnswers::ShareMemory(const std::shared_ptr<SharedArena>& memory,
                                v1::MemoryAnswer& answer) {
  if (memory_ != nullptr) return;
  const auto session = memory->OpenSession();
  if (!session.ok()) return;
  session_ = *session;
  memory_ = memory;
  *answer.mutable_offer() = memory->Offer();
  answer.set_session_offset(session_.offset);
  answer.set_session(session_.number);
}

bool UnreadAnswers::Add(const Asked& asked, absl::StatusOr<BlockReading> reading, uint64_t limit) {
  v1::StreamReply& reply = *OpenFrame().add_replies();
  reply.set_id(asked.id);
  if (!reading.ok()) {
    SayStatus(reading.status(), reply);
    return true;
  }
  const bool complete = reading->has_payload() || reading->header.unchanged();
  if (asked.wants_values && !complete) {
    SayStatus(absl::InternalError("the requested version has no values"), reply);
    return true;
  }
  reply.set_duplicate(reading->duplicate);
  // A worker that reads no values still learns how far the block is.
  if (asked.wants_values || reading->header.version() > 0) {
    *reply.mutable_version() = std::move(reading->header);
  }
  if (!asked.wants_values) return true;
  if (!reading->has_payload()) return true;
  const std::span<const float> raw =
      reading->values ? reading->values.span() : std::span<const float>();
  const bool shared = memory_ != nullptr && raw.data() != nullptr && memory_->Contains(raw.data());
  if (!shared || !may_hold(raw.size_bytes(), limit)) {
    return AddPayload(reading->TakePayload(), limit, reply);
  }
  reply.mutable_shared()->set_offset(memory_->OffsetOf(raw.data()));
  reply.mutable_shared()->set_bytes(raw.size_bytes());
  Hold(asked.id, std::move(reading->values));
  return true;
}

bool UnreadAnswers::AddPayload(PayloadBytes payload, uint64_t limit, v1::StreamReply& reply) {
  if (stalled_ && unread_bytes_ + payload.bytes.size() > limit) {
    Refuse(rank_, reply);
    return false;
  }
  unread_bytes_ += payload.bytes.size();
  large_ |= payload.bytes.size() > kLargeBytes;
  reply.set_payload_bytes(payload.bytes.size());
  // The frame refers to the version's own memory and keeps it until it is sent.
  frames_.back().payload.Append(payload.bytes, std::move(payload.owner));
  return true;
}

bool UnreadAnswers::may_hold(uint64_t bytes, uint64_t limit) const {
  return held_.empty() || (held_.size() < kHeldMax && held_bytes_ + bytes <= limit);
}

void UnreadAnswers::Hold(uint64_t id, SharedFloats values) {
  const uint64_t bytes = values.span().size_bytes();
  held_bytes_ += bytes;
  large_ |= bytes > kLargeBytes;
  held_[id] = std::move(values);
}

void UnreadAnswers::Release(uint64_t id) {
  const auto found = held_.find(id);
  if (found == held_.end()) return;
  held_bytes_ -= found->second.span().size_bytes();
  held_.erase(found);
}

bool UnreadAnswers::beyond(uint64_t limit) const {
  return frames_.size() > kFramesMax || unread_bytes_ > limit;
}

bool UnreadAnswers::worth_a_frame() const {
  if (frames_.empty()) return false;
  return large_ || frames_.size() > 1 || unread_bytes_ - writing_bytes_ >= kTogetherBytes ||
         frames_.front().head->replies_size() >= kTogetherReplies;
}

uint64_t UnreadAnswers::TakeBack(Time now, uint64_t limit) {
  if (!writing_ || unread_bytes_ <= limit) return 0;
  if (now - write_began_ < PatienceFor(writing_bytes_)) return 0;
  stalled_ = true;
  uint64_t answers = 0;
  // Takes back the newest answers first, because the oldest ones are about to leave.
  for (auto frame = frames_.rbegin(); frame != frames_.rend() && unread_bytes_ > limit; ++frame) {
    if (frame->payload.bytes() == 0) continue;
    unread_bytes_ -= frame->payload.bytes();
    frame->payload = FrameWriter();
    for (v1::StreamReply& reply : *frame->head->mutable_replies()) {
      if (reply.payload_bytes() == 0) continue;
      Refuse(rank_, reply);
      ++answers;
    }
  }
  return answers;
}

grpc::ByteBuffer UnreadAnswers::BeginWrite(Time now) {
  Frame& frame = frames_.front();
  writing_bytes_ = frame.payload.bytes();
  writing_ = true;
  write_began_ = now;
  grpc::ByteBuffer bytes = frame.payload.Finish(*frame.head);
  frames_.pop_front();
  large_ &= !frames_.empty();
  return bytes;
}

void UnreadAnswers::OnWritten() {
  writing_ = stalled_ = false;
  unread_bytes_ -= std::exchange(writing_bytes_, 0);
}

void UnreadAnswers::Clear() {
  // The session must be closed before its memory is released; see common/shm/shared_memory.h.
  if (memory_ != nullptr) memory_->CloseSession(session_);
  frames_.clear();
  held_.clear();
  unread_bytes_ = writing_bytes_;
  held_bytes_ = 0;
}

}  // namespace leeway
