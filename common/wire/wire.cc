#include "common/wire/wire.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/strings/str_cat.h"
#include "common/hand_over.h"
#include "common/status.h"
#include "leeway/v1/parameter_server.pb.h"

namespace leeway {
namespace {

static_assert(std::endian::native == std::endian::little, "payloads are little-endian float32");

// The numbers of the payload field in the unary messages and in the frames.
constexpr uint32_t kPayloadField = 2;
constexpr uint32_t kFramePayloadField = 15;
// The maximum size of a message without its payload. A header has some forty bytes, and a frame has
// at most a few thousand headers.
constexpr uint64_t kHeadBytesMax = 1 << 20;
// The limits of a request frame. They are low for two reasons. A server then works on one stream
// only for a short time before it turns to the next one. And a server that still needs one part of
// a frame keeps all of the frame's memory. kRequestBytesMax limits the sum of all payloads of a
// frame except the largest.
constexpr uint64_t kRequestBytesMax = 1 << 20;
constexpr int kRequestsMax = 4096;
// Payloads below this size are copied, because a separate slice costs an allocation, a callback and
// an entry in the socket's list.
constexpr size_t kCopyBelow = 8 << 10;

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

using Piece = FloatPayload::Piece;
using PieceList = FloatPayload::PieceList;

void AppendVarint(uint64_t value, std::string& out) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void AppendTag(uint32_t field, std::string& out) {
  AppendVarint(field << 3 | kLengthDelimited, out);
}

// Releases one reference to the owner of the bytes. gRPC calls this function when the bytes have
// been sent.
void DropOwner(void* owner) {
  TakeOver(owner);
  delete static_cast<std::shared_ptr<const void>*>(owner);
}
void KeepNothing(void*) {}

grpc::Slice SliceOf(std::span<const uint8_t> bytes, std::shared_ptr<const void> owner) {
  void* start = const_cast<uint8_t*>(bytes.data());
  if (owner == nullptr) return grpc::Slice(start, bytes.size(), KeepNothing, nullptr);
  auto* const kept = new std::shared_ptr<const void>(std::move(owner));
  HandOver(kept);
  return grpc::Slice(start, bytes.size(), DropOwner, kept);
}

std::span<const uint8_t> BytesOf(std::span<const float> values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()};
}

grpc::ByteBuffer Encode(const google::protobuf::MessageLite& head, std::span<const uint8_t> payload,
                        std::shared_ptr<const void> owner) {
  std::string prefix = head.SerializeAsString();
  if (payload.empty()) {
    const grpc::Slice slice(prefix);
    return grpc::ByteBuffer(&slice, 1);
  }
  AppendTag(kPayloadField, prefix);
  AppendVarint(payload.size(), prefix);
  const grpc::Slice slices[] = {grpc::Slice(prefix), SliceOf(payload, std::move(owner))};
  return grpc::ByteBuffer(slices, 2);
}

// Reads a message that is split into pieces.
class PieceReader {
 public:
  explicit PieceReader(const PieceList& pieces) : pieces_(pieces) {
    for (const auto& piece : pieces_) left_ += piece.size();
  }

  uint64_t left() const { return left_; }

  // Reads a varint and appends its bytes to `raw`.
  bool ReadVarint(uint64_t& value, std::string& raw) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (left_ == 0) return false;
      const uint8_t byte = pieces_[index_][offset_];
      raw.push_back(static_cast<char>(byte));
      Advance(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  }

  // Calls `sink` with the next `bytes` bytes, piece by piece.
  template <typename Sink>
  bool Take(uint64_t bytes, Sink sink) {
    if (bytes > left_) return false;
    while (bytes > 0) {
      const auto rest = pieces_[index_].subspan(offset_);
      const auto taken = rest.first(std::min<uint64_t>(bytes, rest.size()));
      if (!taken.empty()) sink(taken);
      Advance(taken.size());
      bytes -= taken.size();
    }
    return true;
  }

 private:
  void Advance(uint64_t bytes) {
    offset_ += bytes;
    left_ -= bytes;
    if (offset_ == pieces_[index_].size() && left_ > 0) {
      ++index_;
      offset_ = 0;
    }
  }

  const PieceList& pieces_;
  uint64_t left_ = 0;
  size_t index_ = 0;
  size_t offset_ = 0;
};

// A message in two parts: the bytes of all fields except the payload, and the location of the
// payload. If a message has two payloads, the last one counts, as in protobuf.
struct Parts {
  std::string head;
  PieceList payload;
};

// Sets `bytes` to the number of bytes of a field's value that are still to be read: 0 after a
// varint. Appends to `head` what it reads: a varint, or the length before a value.
bool ReadValueLength(uint32_t wire_type, PieceReader& reader, std::string& head, uint64_t& bytes) {
  bytes = 0;
  uint64_t value;
  switch (wire_type) {
    case kVarint:
      return reader.ReadVarint(value, head);
    case kFixed64:
      bytes = 8;
      return true;
    case kFixed32:
      bytes = 4;
      return true;
    case kLengthDelimited:
      return reader.ReadVarint(bytes, head);
    default:
      return false;
  }
}

bool ReadField(uint32_t payload_field, PieceReader& reader, Parts& parts) {
  const size_t begin = parts.head.size();
  uint64_t tag, bytes;
  if (!reader.ReadVarint(tag, parts.head) || tag >> 3 == 0) return false;
  if (!ReadValueLength(tag & 7, reader, parts.head, bytes)) return false;
  if (tag >> 3 == payload_field && (tag & 7) == kLengthDelimited) {
    parts.head.resize(begin);
    parts.payload.clear();
    return reader.Take(bytes, [&](Piece piece) { parts.payload.push_back(piece); });
  }
  if (parts.head.size() + bytes > kHeadBytesMax) return false;
  return reader.Take(bytes, [&](Piece piece) {
    parts.head.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
}

// The slices that gRPC received, and the payload in them.
struct Received {
  std::shared_ptr<std::vector<grpc::Slice>> slices;
  PieceList payload;
};

absl::StatusOr<Received> Decode(const grpc::ByteBuffer& buffer, uint32_t payload_field,
                                const char* what, google::protobuf::MessageLite& message) {
  Received received{std::make_shared<std::vector<grpc::Slice>>(), {}};
  if (!buffer.Dump(received.slices.get()).ok()) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": empty message"));
  }
  PieceList pieces;
  pieces.reserve(received.slices->size());
  for (const grpc::Slice& slice : *received.slices) {
    if (slice.size() > 0) pieces.emplace_back(slice.begin(), slice.size());
  }
  Parts parts;
  PieceReader reader(pieces);
  while (reader.left() > 0) {
    if (ReadField(payload_field, reader, parts)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": not a protobuf message: it is truncated, or a field is malformed"));
  }
  if (!message.ParseFromString(parts.head)) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": malformed header"));
  }
  received.payload = std::move(parts.payload);
  return received;
}

absl::StatusOr<FloatPayload> PayloadOf(Received received, v1::Encoding encoding, const char* what) {
  uint64_t bytes = 0;
  for (const Piece& piece : received.payload) bytes += piece.size();
  if (encoding == v1::ENCODING_RAW && bytes % sizeof(float) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ".payload: ", bytes, " bytes are not a whole number of float32 values"));
  }
  return FloatPayload(std::move(received.slices), std::move(received.payload));
}

}  // namespace

grpc::ByteBuffer EncodePush(const v1::ExchangeHeader& header, std::span<const float> values,
                            std::shared_ptr<const void> owner) {
  v1::PushRequest message;
  *message.mutable_header() = header;
  return Encode(message, BytesOf(values), std::move(owner));
}

grpc::ByteBuffer EncodePullReply(const v1::VersionHeader& header, std::span<const float> values,
                                 std::shared_ptr<const void> owner) {
  return EncodePullReply(header, BytesOf(values), std::move(owner));
}

grpc::ByteBuffer EncodePullReply(const v1::VersionHeader& header, std::span<const uint8_t> payload,
                                 std::shared_ptr<const void> owner) {
  v1::PullReply message;
  *message.mutable_header() = header;
  return Encode(message, payload, std::move(owner));
}

absl::StatusOr<FloatPayload> DecodePush(const grpc::ByteBuffer& buffer,
                                        v1::ExchangeHeader& header) {
  v1::PushRequest message;
  ASSIGN_OR_RETURN(Received received, Decode(buffer, kPayloadField, "PushRequest", message));
  header = std::move(*message.mutable_header());
  return PayloadOf(std::move(received), header.encoding(), "PushRequest");
}

absl::StatusOr<FloatPayload> DecodePullReply(const grpc::ByteBuffer& buffer,
                                             v1::VersionHeader& header) {
  v1::PullReply message;
  ASSIGN_OR_RETURN(Received received, Decode(buffer, kPayloadField, "PullReply", message));
  header = std::move(*message.mutable_header());
  return PayloadOf(std::move(received), header.encoding(), "PullReply");
}

void FrameWriter::Append(std::span<const uint8_t> bytes, std::shared_ptr<const void> owner) {
  if (bytes.empty()) return;
  bytes_ += bytes.size();
  if (bytes.size() < kCopyBelow) {
    copied_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return;
  }
  FlushCopied();
  slices_.push_back(SliceOf(bytes, std::move(owner)));
}

void FrameWriter::FlushCopied() {
  if (copied_.empty()) return;
  slices_.emplace_back(copied_);
  copied_.clear();
}

grpc::ByteBuffer FrameWriter::Finish(const google::protobuf::MessageLite& head) {
  std::string prefix = head.SerializeAsString();
  if (bytes_ > 0) {
    AppendTag(kFramePayloadField, prefix);
    AppendVarint(bytes_, prefix);
  }
  FlushCopied();
  slices_.insert(slices_.begin(), grpc::Slice(prefix));
  grpc::ByteBuffer frame(slices_.data(), slices_.size());
  slices_.clear();
  bytes_ = 0;
  return frame;
}

FramePayload::FramePayload(std::shared_ptr<const void> owner, PieceList pieces)
    : owner_(std::move(owner)), pieces_(std::move(pieces)) {
  for (const Piece& piece : pieces_) left_ += piece.size();
}

absl::StatusOr<FloatPayload> FramePayload::Take(uint64_t bytes) {
  if (bytes > left_) return absl::DataLossError("the frame's payload is truncated");
  left_ -= bytes;
  PieceList taken;
  while (bytes > 0) {
    const Piece rest = pieces_[index_].subspan(offset_);
    const Piece part = rest.first(std::min<uint64_t>(bytes, rest.size()));
    taken.push_back(part);
    bytes -= part.size();
    offset_ += part.size();
    if (offset_ == pieces_[index_].size()) {
      ++index_;
      offset_ = 0;
    }
  }
  return FloatPayload(owner_, std::move(taken));
}

absl::StatusOr<FramePayload> DecodeRequestFrame(const grpc::ByteBuffer& buffer,
                                                v1::RequestFrame& head) {
  ASSIGN_OR_RETURN(Received received, Decode(buffer, kFramePayloadField, "RequestFrame", head));
  uint64_t bytes = 0;
  for (const Piece& piece : received.payload) bytes += piece.size();
  uint64_t largest = 0;
  uint64_t left = bytes;
  for (const v1::StreamRequest& request : head.requests()) {
    if (request.payload_bytes() > left) {
      return absl::DataLossError("RequestFrame: the payload is truncated");
    }
    left -= request.payload_bytes();
    largest = std::max<uint64_t>(largest, request.payload_bytes());
  }
  if (head.requests_size() > kRequestsMax || bytes > kRequestBytesMax + largest) {
    return absl::InvalidArgumentError(
        absl::StrCat("RequestFrame: ", head.requests_size(), " requests with ", bytes,
                     " bytes exceed the limits of a frame: send them in several frames"));
  }
  return FramePayload(std::move(received.slices), std::move(received.payload));
}

absl::StatusOr<FramePayload> DecodeReplyFrame(const grpc::ByteBuffer& buffer,
                                              v1::ReplyFrame& head) {
  ASSIGN_OR_RETURN(Received received, Decode(buffer, kFramePayloadField, "ReplyFrame", head));
  return FramePayload(std::move(received.slices), std::move(received.payload));
}

}  // namespace leeway
