// Handles what a lane receives: replies to its calls, payloads in frames or in the server's memory,
// and reports that an answer has to wait.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/support/byte_buffer.h>
#include <spdlog/spdlog.h>

#include "client/transport/stream_lane.h"
#include "common/printable.h"
#include "common/retry_hint.h"
#include "common/status.h"

namespace leeway {
namespace {

// Returns how long a link that carries `bytes` may bring no values: 20 s, and the time for the
// bytes at 128 KiB a second.
Duration SilenceOf(uint64_t bytes) {
  constexpr uint64_t kSlowestBytesPerSecond = 128 << 10;
  return std::chrono::seconds(20) +
         std::chrono::milliseconds(bytes * 1000 / kSlowestBytesPerSecond);
}

absl::Status StatusOf(const v1::StreamReply& reply) {
  absl::Status status(static_cast<absl::StatusCode>(reply.code()), Printable(reply.message()));
  if (reply.retry_after_ms() <= 0) return status;
  return WithRetryHint(std::move(status), std::chrono::milliseconds(reply.retry_after_ms()));
}

}  // namespace

void StreamLane::TakeHead(const v1::ReplyFrame& head, uint64_t payload_bytes) {
  if (payload_bytes > 0) {
    MutexLock lock(mutex_);
    values_came_ = std::chrono::steady_clock::now();
  }
  if (head.has_answer()) TakeAnswer(head.answer());
}

absl::Status StreamLane::TakeAcceptance(const v1::StreamReply& reply) {
  std::shared_ptr<TransportCall> call;
  {
    MutexLock lock(mutex_);
    const auto found = pending_.find(reply.id());
    if (found == pending_.end()) return absl::OkStatus();
    call = found->second.call;
  }
  call->OnAccepted();
  const std::string missing = Printable(reply.message());
  if (!missing.empty()) {
    WaitOnOrEnd(reply.id(), *call, missing, absl::UnavailableError(missing));
  }
  return absl::OkStatus();
}

absl::Status StreamLane::TakeReply(const v1::StreamReply& reply, FramePayload& frame) {
  std::shared_ptr<TransportCall> call;
  {
    MutexLock lock(mutex_);
    call = Remove(reply.id());
  }
  TransportReply result;
  auto payload =
      reply.has_shared() ? SharedPayloadOf(reply, result) : frame.Take(reply.payload_bytes());
  // The call is null if it was given up. Nobody waits for its reply then.
  if (call != nullptr) {
    if (reply.code() != 0) {
      call->OnDone(StatusOf(reply), {});
    } else if (!payload.ok()) {
      // The payload cannot be read, so the call must be made again, whatever the reply says.
      call->OnDone(absl::UnavailableError(payload.status().message()), {});
    } else {
      result.version = reply.version();
      result.payload = *std::move(payload);
      call->OnDone(absl::OkStatus(), result);
    }
  }
  if (reply.has_shared()) {
    MutexLock lock(mutex_);
    released_.push_back(reply.id());
  }
  return payload.ok() || absl::IsUnavailable(payload.status()) ? absl::OkStatus()
                                                               : payload.status();
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

absl::StatusOr<FloatPayload> StreamLane::SharedPayloadOf(const v1::StreamReply& reply,
                                                         TransportReply& result) {
  if (server_memory_ == nullptr) {
    return absl::UnavailableError("the server's memory is not mapped");
  }
  ASSIGN_OR_RETURN(const auto values,
                   server_memory_->Floats(reply.shared().offset(), reply.shared().bytes()));
  result.still_stands = [this] { return server_memory_->SessionStands(session_); };
  return FloatPayload::Of(values);
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
    // This stream's replies will go on referring to the server's memory, which cannot be read. So
    // end the stream.
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
      // The link is still carrying the answers of other calls. Sending this call again would make
      // the link slower.
      const bool link_is_busy = now - values_came_ < SilenceOf(pending.bytes);
      (link_is_busy ? slow : late).emplace_back(id, pending.call);
    }
    for (const auto& [id, call] : late) Remove(id);
  }
  const absl::Status no_answer = absl::DeadlineExceededError("no answer came in time");
  for (const auto& [id, call] : late) call->OnDone(no_answer, {});
  for (const auto& [id, call] : slow) WaitOnOrEnd(id, *call, "", no_answer);
}

}  // namespace leeway
