// The data plane's bytes. A message is some small fields, which protobuf handles, and one payload,
// which it never touches: sending adds the payload as slices that refer to the tensors' own memory;
// receiving leaves it in the slices that the network filled. Stock stubs see ordinary messages.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/support/slice.h>

#include "absl/status/statusor.h"
#include "common/wire/payload.h"

namespace grpc {
class ByteBuffer;
}
namespace google::protobuf {
class MessageLite;
}

namespace leeway {

namespace v1 {
class ExchangeHeader;
class ReplyFrame;
class RequestFrame;
class VersionHeader;
}  // namespace v1

// ---- unary messages: PushRequest, PullReply

// `values` are not copied: `owner` keeps them alive until gRPC has sent them (null: the caller
// does).
grpc::ByteBuffer EncodePush(const v1::ExchangeHeader& header, std::span<const float> values,
                            std::shared_ptr<const void> owner);
grpc::ByteBuffer EncodePullReply(const v1::VersionHeader& header, std::span<const float> values,
                                 std::shared_ptr<const void> owner);
// In the header's encoding.
grpc::ByteBuffer EncodePullReply(const v1::VersionHeader& header, std::span<const uint8_t> payload,
                                 std::shared_ptr<const void> owner);

// INVALID_ARGUMENT, naming the field, for bytes that are no such message or a raw payload that is
// not whole floats. What another encoding says is in pieces(). Fields unknown to this build are
// passed over, as protobuf does. The payload keeps the received slices alive.
absl::StatusOr<FloatPayload> DecodePush(const grpc::ByteBuffer& buffer, v1::ExchangeHeader& header);
absl::StatusOr<FloatPayload> DecodePullReply(const grpc::ByteBuffer& buffer,
                                             v1::VersionHeader& header);

// ---- frames of the stream: RequestFrame, ReplyFrame

// Collects the payloads of one frame, in order.
class FrameWriter {
 public:
  // Refers to `bytes`, which `owner` keeps alive (null: the caller does, until the frame is sent);
  // copies what is so short that referring costs more.
  void Append(std::span<const uint8_t> bytes, std::shared_ptr<const void> owner);
  size_t bytes() const { return bytes_; }
  // The frame: `head`, whose own payload field is empty, and what was appended. Empties the writer.
  grpc::ByteBuffer Finish(const google::protobuf::MessageLite& head);

 private:
  void FlushCopied();

  std::string copied_;
  std::vector<grpc::Slice> slices_;
  size_t bytes_ = 0;
};

// A received frame's payload, dealt out from its beginning.
class FramePayload {
 public:
  FramePayload() = default;
  FramePayload(std::shared_ptr<const void> owner, FloatPayload::PieceList pieces);
  uint64_t left() const { return left_; }
  // What keeps the memory; to be replaced by something that keeps it and knows more.
  const std::shared_ptr<const void>& owner() const { return owner_; }
  void SetOwner(std::shared_ptr<const void> owner) { owner_ = std::move(owner); }
  // The next `bytes`; DATA_LOSS if fewer are left. Keeps the received slices alive.
  absl::StatusOr<FloatPayload> Take(uint64_t bytes);

 private:
  std::shared_ptr<const void> owner_;
  FloatPayload::PieceList pieces_;
  size_t index_ = 0;
  size_t offset_ = 0;
  uint64_t left_ = 0;
};

// INVALID_ARGUMENT for bytes that are no such message, and for more than a frame of requests may
// be; DATA_LOSS where the requests say that they have more payload than the frame.
absl::StatusOr<FramePayload> DecodeRequestFrame(const grpc::ByteBuffer& buffer,
                                                v1::RequestFrame& head);
absl::StatusOr<FramePayload> DecodeReplyFrame(const grpc::ByteBuffer& buffer, v1::ReplyFrame& head);

}  // namespace leeway
