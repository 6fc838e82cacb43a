// Finds the payloads of a stream's requests: in its frames, or in memory that the peer has offered.
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "common/status.h"
#include "server/service/stream_session.h"

namespace leeway {
void StreamSession::TakeOffer(const v1::RequestFrame& head) {
  auto mapping = SharedMapping::Map(head.offer());
  v1::MemoryAnswer answer;
  answer.set_mapped(mapping.ok());
  if (!mapping.ok()) answer.set_refusal(std::string(mapping.status().message()));
  peer_session_ = {head.session_offset(), head.session()};
  // Another server does not read values from this server, so it need not map the memory.
  const bool reads = mapping.ok() && peer_session_.number == 0;
  const auto memory = reads ? table_.memory() : nullptr;
  if (mapping.ok()) peer_memory_ = std::move(*mapping);
  MutexLock lock(mutex_);
  if (memory != nullptr && answers_.memory() == nullptr) {
    if (auto session = memory->OpenSession(); session.ok()) {
      session_ = *session;
      answers_.SetMemory(memory);
      *answer.mutable_offer() = memory->Offer();
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

absl::StatusOr<FloatPayload> StreamSession::SharedPayloadOf(const v1::StreamRequest& request) {
  absl::StatusOr<std::span<const float>> values =
      request.shared().bytes() <= kMessageBytesMax
          ? SharedFloatsOf(request.shared())
          : absl::InvalidArgumentError(absl::StrCat("shared: ", request.shared().bytes(),
                                                    " bytes exceed the limit of ", kMessageBytesMax,
                                                    " bytes for a message"));
  if (values.ok()) return FloatPayload::Of(*values, peer_memory_);
  const v1::ExchangeHeader& header = request.header();
  return Annotate(values.status(), absl::StrCat("worker ", header.rank(), ", block ",
                                                header.block(), ", clock ", header.clock()));
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
  if (caller_.role == v1::ROLE_WORKER) {
    return absl::PermissionDeniedError(absl::StrCat(
        "only servers and peers replicate blocks; the caller's role is ", RoleName(*caller_.role)));
  }
  if (!std::exchange(of_server_, true)) streams_.BelongsToServer(shared_from_this());
  absl::StatusOr<FloatPayload> payload;
  std::function<bool()> stands;
  if (request.replicated().parts().empty()) {
    ASSIGN_OR_RETURN(payload, frame.Take(request.payload_bytes()));
  } else {
    payload = PartsOf(request.replicated());
    stands = [this] { return peer_memory_->SessionStands(peer_session_); };
  }
  absl::Status status = payload.status();
  const auto store = table_.FindReplica(request.header());
  if (status.ok()) status = store.status();
  if (status.ok()) {
    status = (*store)->Take(request.header(), request.replicated(), *payload, stands);
  }
  Answer({request.id(), false}, status.ok() ? absl::StatusOr<BlockReading>(BlockReading())
                                            : absl::StatusOr<BlockReading>(status));
  return absl::OkStatus();
}

}  // namespace leeway
