// Where the payloads of a stream's requests are: in its frames, or in memory that the peer offered.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/channel.h"
#include "common/status.h"
#include "server/stream_session.h"

namespace leeway {
namespace {

// Not OK: the stream cannot be read on.
absl::StatusOr<FloatPayload> TakeFrom(FramePayload& frame, uint64_t bytes) {
  auto payload = frame.Take(bytes);
  if (payload.has_value()) return *std::move(payload);
  return absl::DataLossError("RequestFrame: the payload breaks off");
}

}  // namespace

void StreamSession::TakeOffer(const v1::RequestFrame& head) {
  auto mapping = SharedMapping::Map(head.offer());
  v1::MemoryAnswer answer;
  answer.set_mapped(mapping.ok());
  if (!mapping.ok()) answer.set_refusal(std::string(mapping.status().message()));
  peer_session_ = {head.session_offset(), head.session()};
  // A server reads no values here.
  const bool reads = mapping.ok() && peer_session_.number == 0;
  const auto memory = reads ? service_->memory() : nullptr;
  if (mapping.ok()) peer_memory_ = std::move(*mapping);
  MutexLock lock(mutex_);
  if (memory != nullptr && memory_ == nullptr) {
    if (auto session = memory->OpenSession(); session.ok()) {
      session_ = *session;
      memory_ = memory;
      *answer.mutable_offer() = memory_->Offer();
      answer.set_session_offset(session_.offset);
      answer.set_session(session_.number);
    }
  }
  *answers_.OpenFrame().mutable_answer() = std::move(answer);
}

absl::StatusOr<std::span<const float>> StreamSession::SharedFloatsOf(
    const v1::SharedRange& range) const {
  if (peer_memory_ != nullptr) return peer_memory_->Floats(range.offset(), range.bytes());
  return absl::InvalidArgumentError("shared: no memory was offered on this stream");
}

absl::StatusOr<FloatPayload> StreamSession::PayloadOf(const v1::StreamRequest& request,
                                                      FramePayload& frame, bool copies) {
  if (!request.has_shared()) return TakeFrom(frame, request.payload_bytes());
  auto payload = SharedPayloadOf(request, copies);
  if (payload.ok()) return payload;
  const v1::ExchangeHeader& header = request.header();
  return Annotate(payload.status(), absl::StrCat("worker ", header.rank(), ", block ",
                                                 header.block(), ", clock ", header.clock()));
}

absl::StatusOr<FloatPayload> StreamSession::SharedPayloadOf(const v1::StreamRequest& request,
                                                            bool copies) {
  // Before memory is taken on its word: whoever shares memory need not have any behind it.
  if (request.shared().bytes() > kMessageBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("shared: ", request.shared().bytes(),
                                                   " bytes, more than the ", kMessageBytesMax,
                                                   " of a message"));
  }
  ASSIGN_OR_RETURN(const auto values, SharedFloatsOf(request.shared()));
  if (!copies) return FloatPayload::Of(values, peer_memory_);
  auto copy = std::make_shared_for_overwrite<float[]>(values.size());
  std::copy(values.begin(), values.end(), copy.get());
  const std::span<const float> span(copy.get(), values.size());
  return FloatPayload::Of(span, service_->budget().Hold(span.size_bytes(), std::move(copy)));
}

absl::StatusOr<FloatPayload> StreamSession::PartsOf(const v1::ReplicatedBlock& replicated) const {
  if (peer_session_.number == 0) {
    return absl::InvalidArgumentError("parts: the memory was offered without a session");
  }
  FloatPayload::PieceList pieces;
  for (const v1::SharedRange& part : replicated.parts()) {
    ASSIGN_OR_RETURN(const auto values, SharedFloatsOf(part));
    pieces.emplace_back(reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes());
  }
  return FloatPayload(peer_memory_, std::move(pieces));
}

absl::Status StreamSession::TakeReplica(const v1::StreamRequest& request, FramePayload& frame) {
  if (!std::exchange(of_server_, true)) service_->streams().BelongsToServer(shared_from_this());
  absl::StatusOr<FloatPayload> payload;
  std::function<bool()> stands;
  if (request.replicated().parts().empty()) {
    ASSIGN_OR_RETURN(payload, TakeFrom(frame, request.payload_bytes()));
  } else {
    payload = PartsOf(request.replicated());
    stands = [this] { return peer_memory_->SessionStands(peer_session_); };
  }
  absl::Status status = payload.status();
  if (status.ok()) {
    status = service_->Replicate(request.header(), request.replicated(), *payload, stands);
  }
  Answer({request.id(), false}, status.ok() ? absl::StatusOr<BlockReading>(BlockReading())
                                            : absl::StatusOr<BlockReading>(status));
  return absl::OkStatus();
}

}  // namespace leeway
