// Encodes and decodes messages of the data plane. A message has some small fields, which protobuf
// handles, and one payload, which protobuf never touches. A sender adds the payload as slices that
// refer to the tensors' own memory. A receiver leaves the payload in the slices that the network
// has filled. Stubs that protobuf generates can read and write the same messages.
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

// Returns the encoded message. The values are not copied. `owner` keeps them alive until gRPC has
// sent them. If `owner` is null, the caller must keep them alive.
grpc::ByteBuffer EncodePush(const v1::ExchangeHeader& header, std::span<const float> values,
                            std::shared_ptr<const void> owner);
grpc::ByteBuffer EncodePullReply(const v1::VersionHeader& header, std::span<const float> values,
                                 std::shared_ptr<const void> owner);
// Encodes a reply in the same way. The payload has the encoding that the header states.
grpc::ByteBuffer EncodePullReply(const v1::VersionHeader& header, std::span<const uint8_t> payload,
                                 std::shared_ptr<const void> owner);

// Decodes a PushRequest. Returns INVALID_ARGUMENT, naming the field, if the bytes are not such a
// message or a raw payload is not a whole number of floats. If the payload has another encoding,
// the bytes are in the result's pieces(). Unknown fields are ignored, as in protobuf. The result
// keeps the received slices alive.
absl::StatusOr<FloatPayload> DecodePush(const grpc::ByteBuffer& buffer, v1::ExchangeHeader& header);
absl::StatusOr<FloatPayload> DecodePullReply(const grpc::ByteBuffer& buffer,
                                             v1::VersionHeader& header);

// ---- frames of the stream: RequestFrame, ReplyFrame

// Collects the payloads of one frame, in order.
class FrameWriter {
 public:
  // Adds a reference to `bytes`, or a copy if there are so few bytes that a reference would cost
  // more. `owner` keeps the bytes alive until the frame is sent. If `owner` is null, the caller
  // must keep them alive.
  void Append(std::span<const uint8_t> bytes, std::shared_ptr<const void> owner);
  size_t bytes() const { return bytes_; }
  // Returns the frame, which has `head` and the appended payloads, and empties the writer. The
  // payload field of `head` must be empty.
  grpc::ByteBuffer Finish(const google::protobuf::MessageLite& head);

 private:
  void FlushCopied();

  std::string copied_;
  std::vector<grpc::Slice> slices_;
  size_t bytes_ = 0;
};

// The payload of a received frame. The messages of the frame take their parts of it, in order.
class FramePayload {
 public:
  FramePayload() = default;
  FramePayload(std::shared_ptr<const void> owner, FloatPayload::PieceList pieces);
  uint64_t left() const { return left_; }
  // The owner keeps the memory of the payload alive. SetOwner replaces the owner with an object
  // that keeps the old owner alive and has further information.
  const std::shared_ptr<const void>& owner() const { return owner_; }
  void SetOwner(std::shared_ptr<const void> owner) { owner_ = std::move(owner); }
  // Returns the next `bytes` bytes. Returns DATA_LOSS if fewer are left. The result keeps the
  // received slices alive.
  absl::StatusOr<FloatPayload> Take(uint64_t bytes);

 private:
  std::shared_ptr<const void> owner_;
  FloatPayload::PieceList pieces_;
  size_t index_ = 0;
  size_t offset_ = 0;
  uint64_t left_ = 0;
};

// Returns INVALID_ARGUMENT if the bytes are not such a message, or exceed the limits of a request
// frame. Returns DATA_LOSS if the requests name more payload than the frame has.
absl::StatusOr<FramePayload> DecodeRequestFrame(const grpc::ByteBuffer& buffer,
                                                v1::RequestFrame& head);
absl::StatusOr<FramePayload> DecodeReplyFrame(const grpc::ByteBuffer& buffer, v1::ReplyFrame& head);

}  // namespace leeway
