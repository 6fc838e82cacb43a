// What a lane is answered: replies to their calls, payloads from frames or from the server's
// memory, and those that wait for longer than was thought.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/support/byte_buffer.h>
#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/frame_head.h"
#include "common/retry_hint.h"
#include "common/status.h"
#include "worker/client/stream_lane.h"

namespace leeway {
namespace {

// A link that is in use brings so many bytes within this time.
Duration SilenceOf(uint64_t bytes) {
  constexpr uint64_t kSlowestBytesPerSecond = 128 << 10;
  return std::chrono::seconds(20) +
         std::chrono::milliseconds(bytes * 1000 / kSlowestBytesPerSecond);
}

}  // namespace

void StreamLane::Dispatch(const grpc::ByteBuffer& bytes) {
  const FrameHead<v1::ReplyFrame> head;
  auto payload = DecodeReplyFrame(bytes, *head);
  absl::Status sane = payload.status();
  if (sane.ok() && payload->left() > 0) {
    MutexLock lock(mutex_);
    values_came_ = std::chrono::steady_clock::now();
  }
  if (sane.ok() && head->has_answer()) TakeAnswer(head->answer());
  for (int i = 0; sane.ok() && i < head->replies_size(); ++i) {
    sane = TakeReply(head->replies(i), *payload);
  }
  if (sane.ok()) return;
  spdlog::warn("{} sent a frame that makes no sense: {}; connecting anew", options_.server,
               std::string(sane.message()));
  Break();
}

absl::Status StreamLane::TakeReply(const v1::StreamReply& reply, FramePayload& frame) {
  std::shared_ptr<TransportCall> call;
  {
    MutexLock lock(mutex_);
    if (!reply.accepted()) {
      call = Remove(reply.id());
    } else if (const auto found = pending_.find(reply.id()); found != pending_.end()) {
      call = found->second.call;
    }
  }
  if (reply.accepted()) {
    if (call == nullptr) return absl::OkStatus();
    call->OnAccepted();
    const std::string& missing = reply.message();
    if (!missing.empty()) {
      WaitOnOrEnd(reply.id(), *call, missing, absl::UnavailableError(missing));
    }
    return absl::OkStatus();
  }
  TransportReply result;
  const absl::Status read = ReadPayload(reply, frame, result);
  const bool sane = !absl::IsInvalidArgument(read);
  // Nobody waits for it: it was given up.
  if (call != nullptr) {
    if (reply.code() != 0) {
      absl::Status status(static_cast<absl::StatusCode>(reply.code()), reply.message());
      if (reply.retry_after_ms() > 0) {
        status =
            WithRetryHint(std::move(status), std::chrono::milliseconds(reply.retry_after_ms()));
      }
      call->OnDone(status, {});
    } else if (!read.ok()) {
      // Sense or not, it is no answer: to be asked for again.
      call->OnDone(absl::UnavailableError(read.message()), {});
    } else {
      result.version = reply.version();
      call->OnDone(absl::OkStatus(), result);
    }
  }
  if (reply.has_shared()) {
    MutexLock lock(mutex_);
    released_.push_back(reply.id());
  }
  return sane ? absl::OkStatus() : read;
}

void StreamLane::WaitOnOrEnd(uint64_t id, TransportCall& call, const std::string& missing,
                             const absl::Status& end) {
  const std::optional<Duration> longer = call.OnMissing(missing);
  std::shared_ptr<TransportCall> ended;
  {
    MutexLock lock(mutex_);
    const auto found = pending_.find(id);
    if (found == pending_.end()) return;
    if (longer.has_value()) {
      found->second.deadline = std::chrono::steady_clock::now() + *longer;
      return;
    }
    ended = Remove(id);
  }
  ended->OnDone(end, {});
}

std::shared_ptr<TransportCall> StreamLane::Remove(uint64_t id) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return nullptr;
  std::shared_ptr<TransportCall> call = std::move(found->second.call);
  unanswered_bytes_ -= found->second.bytes;
  options_.driver->CallsEnded(1, found->second.bytes);
  pending_.erase(found);
  return call;
}

absl::Status StreamLane::ReadPayload(const v1::StreamReply& reply, FramePayload& frame,
                                     TransportReply& result) {
  if (!reply.has_shared()) {
    auto payload = frame.Take(reply.payload_bytes());
    if (!payload.has_value()) return absl::InvalidArgumentError("a reply frame breaks off");
    result.payload = std::move(*payload);
    return absl::OkStatus();
  }
  if (server_memory_ == nullptr) {
    return absl::UnavailableError("the server's memory is not mapped");
  }
  ASSIGN_OR_RETURN(const auto values,
                   server_memory_->Floats(reply.shared().offset(), reply.shared().bytes()));
  result.payload = FloatPayload::Of(values);
  result.still_stands = [this] { return server_memory_->SessionStands(session_); };
  return absl::OkStatus();
}

void StreamLane::TakeAnswer(const v1::MemoryAnswer& answer) {
  if (!answer.mapped()) {
    spdlog::info("no shared memory with {}: {}", options_.server, answer.refusal());
  }
  absl::StatusOr<std::shared_ptr<SharedMapping>> mapping = nullptr;
  if (answer.has_offer()) mapping = SharedMapping::Map(answer.offer());
  {
    MutexLock lock(mutex_);
    server_reads_arena_ = answer.mapped();
    offers_ = mapping.ok();
  }
  if (!mapping.ok()) {
    // The server will go on naming its memory in this stream's replies.
    spdlog::info("no shared memory with {}: {}", options_.server,
                 std::string(mapping.status().message()));
    return Break();
  }
  server_memory_ = std::move(*mapping);
  session_ = {answer.session_offset(), answer.session()};
}

void StreamLane::GiveUpLate(Time now) {
  std::vector<std::pair<uint64_t, std::shared_ptr<TransportCall>>> late, slow;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, pending] : pending_) {
      if (pending.deadline > now) continue;
      // What others are answered is on its way before it: to ask again would make the link slower.
      const bool link_is_busy = now - values_came_ < SilenceOf(pending.bytes);
      (link_is_busy ? slow : late).emplace_back(id, pending.call);
    }
    for (const auto& [id, call] : late) Remove(id);
  }
  const absl::Status no_answer = absl::DeadlineExceededError("no answer in time");
  for (const auto& [id, call] : late) call->OnDone(no_answer, {});
  for (const auto& [id, call] : slow) WaitOnOrEnd(id, *call, "", no_answer);
}

}  // namespace leeway
