// Encodes and decodes messages of the data plane. A message has some small fields, which protobuf
// handles, and one payload, which protobuf never touches. A sender adds the payload as slices that
// refer to the tensors' own memory; a receiver leaves it in the slices that the network filled. To
// stock stubs the messages look ordinary.
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

// The values are not copied. `owner` keeps them alive until gRPC has sent them; if it is null, the
// caller does.
grpc::ByteBuffer EncodePush(const v1::ExchangeHeader& header, std::span<const float> values,
                            std::shared_ptr<const void> owner);
grpc::ByteBuffer EncodePullReply(const v1::VersionHeader& header, std::span<const float> values,
                                 std::shared_ptr<const void> owner);
// The payload is in the header's encoding.
grpc::ByteBuffer EncodePullReply(const v1::VersionHeader& header, std::span<const uint8_t> payload,
                                 std::shared_ptr<const void> owner);

// INVALID_ARGUMENT, naming the field, if the bytes are not such a message or a raw payload is not a
// whole number of floats. A payload in another encoding is in pieces(). Unknown fields are ignored,
// as in protobuf. The payload keeps the received slices alive.
absl::StatusOr<FloatPayload> DecodePush(const grpc::ByteBuffer& buffer, v1::ExchangeHeader& header);
absl::StatusOr<FloatPayload> DecodePullReply(const grpc::ByteBuffer& buffer,
                                             v1::VersionHeader& header);

// ---- frames of the stream: RequestFrame, ReplyFrame

// Collects the payloads of one frame, in order.
class FrameWriter {
 public:
  // Refers to `bytes`, which `owner` keeps alive (if null, the caller does until the frame is
  // sent). Copies the bytes if they are so few that a reference costs more.
  void Append(std::span<const uint8_t> bytes, std::shared_ptr<const void> owner);
  size_t bytes() const { return bytes_; }
  // Returns the frame: `head`, whose own payload field must be empty, and the appended payloads.
  // Empties the writer.
  grpc::ByteBuffer Finish(const google::protobuf::MessageLite& head);

 private:
  void FlushCopied();

  std::string copied_;
  std::vector<grpc::Slice> slices_;
  size_t bytes_ = 0;
};

// The payload of a received frame, from which each message takes its part in order.
class FramePayload {
 public:
  FramePayload() = default;
  FramePayload(std::shared_ptr<const void> owner, FloatPayload::PieceList pieces);
  uint64_t left() const { return left_; }
  // Keeps the memory alive. SetOwner replaces it with an object that keeps the old owner and adds
  // information.
  const std::shared_ptr<const void>& owner() const { return owner_; }
  void SetOwner(std::shared_ptr<const void> owner) { owner_ = std::move(owner); }
  // Returns the next `bytes`; DATA_LOSS if fewer are left. The result keeps the received slices
  // alive.
  absl::StatusOr<FloatPayload> Take(uint64_t bytes);

 private:
  std::shared_ptr<const void> owner_;
  FloatPayload::PieceList pieces_;
  size_t index_ = 0;
  size_t offset_ = 0;
  uint64_t left_ = 0;
};

// INVALID_ARGUMENT if the bytes are not such a message, or exceed the limits of a request frame.
// DATA_LOSS if the requests name more payload than the frame has.
absl::StatusOr<FramePayload> DecodeRequestFrame(const grpc::ByteBuffer& buffer,
                                                v1::RequestFrame& head);
absl::StatusOr<FramePayload> DecodeReplyFrame(const grpc::ByteBuffer& buffer, v1::ReplyFrame& head);

}  // namespace leeway
