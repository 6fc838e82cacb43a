#include "server/service/peer_memory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "common/status.h"

namespace leeway {

absl::Status PeerMemory::Map(const v1::RequestFrame& head) {
  session_ = {head.session_offset(), head.session()};
  ASSIGN_OR_RETURN(mapping_, SharedMapping::Map(head.offer()));
  return absl::OkStatus();
}

absl::StatusOr<std::span<const float>> PeerMemory::FloatsOf(const v1::SharedRange& range) const {
  if (mapping_ != nullptr) return mapping_->Floats(range.offset(), range.bytes());
  return absl::InvalidArgumentError("shared: no memory was offered on this stream");
}

absl::StatusOr<FloatPayload> PeerMemory::PayloadOf(const v1::StreamRequest& request) const {
  absl::StatusOr<std::span<const float>> values =
      request.shared().bytes() <= kMessageBytesMax
          ? FloatsOf(request.shared())
          : absl::InvalidArgumentError(absl::StrCat("shared: ", request.shared().bytes(),
                                                    " bytes exceed the limit of ", kMessageBytesMax,
                                                    " bytes for a message"));
  if (values.ok()) return FloatPayload::Of(*values, mapping_);
  const v1::ExchangeHeader& header = request.header();
  return Annotate(values.status(), absl::StrCat("worker ", header.rank(), ", block ",
                                                header.block(), ", clock ", header.clock()));
}

absl::StatusOr<FloatPayload> PeerMemory::PartsOf(const v1::ReplicatedBlock& replicated) const {
  if (!has_session()) {
    return absl::InvalidArgumentError("parts: the memory was offered without a session");
  }
  FloatPayload::PieceList pieces;
  for (const v1::SharedRange& part : replicated.parts()) {
    ASSIGN_OR_RETURN(const auto values, FloatsOf(part));
    pieces.emplace_back(reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes());
  }
  return FloatPayload(mapping_, std::move(pieces));
}

}  // namespace leeway
