#include "common/wire.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include "absl/strings/str_cat.h"
#include "leeway/v1/parameter_server.pb.h"

namespace leeway {
namespace {

static_assert(std::endian::native == std::endian::little, "payloads are little-endian float32");

constexpr uint32_t kHeaderField = 1;
constexpr uint32_t kPayloadField = 2;
// A header is some forty bytes; more is not ours.
constexpr uint64_t kHeaderBytesMax = 4096;

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

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

// Owns one reference; gRPC drops it when the bytes have been sent.
void DropOwner(void* owner) { delete static_cast<std::shared_ptr<const void>*>(owner); }
void KeepNothing(void*) {}

grpc::Slice SliceOf(std::span<const float> values, std::shared_ptr<const void> owner) {
  void* start = const_cast<float*>(values.data());
  if (owner == nullptr) return grpc::Slice(start, values.size_bytes(), KeepNothing, nullptr);
  return grpc::Slice(start, values.size_bytes(), DropOwner,
                     new std::shared_ptr<const void>(std::move(owner)));
}

template <typename Header>
grpc::ByteBuffer Encode(const Header& header, std::span<const float> values,
                        std::shared_ptr<const void> owner) {
  std::string prefix;
  AppendTag(kHeaderField, prefix);
  AppendVarint(header.ByteSizeLong(), prefix);
  header.AppendToString(&prefix);
  if (values.empty()) {
    const grpc::Slice slice(prefix);
    return grpc::ByteBuffer(&slice, 1);
  }
  AppendTag(kPayloadField, prefix);
  AppendVarint(values.size_bytes(), prefix);
  const grpc::Slice slices[] = {grpc::Slice(prefix), SliceOf(values, std::move(owner))};
  return grpc::ByteBuffer(slices, 2);
}

// Walks over a message that lies in pieces.
class PieceReader {
 public:
  explicit PieceReader(const std::vector<FloatPayload::Piece>& pieces) : pieces_(pieces) {
    for (const auto& piece : pieces_) left_ += piece.size();
  }

  uint64_t left() const { return left_; }

  bool ReadVarint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      uint8_t byte;
      if (!ReadByte(byte)) return false;
      value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  }

  // The next `bytes`, as pieces.
  bool Take(uint64_t bytes, std::vector<FloatPayload::Piece>& out) {
    if (bytes > left_) return false;
    while (bytes > 0) {
      const auto rest = pieces_[index_].subspan(offset_);
      const auto taken = rest.first(std::min<uint64_t>(bytes, rest.size()));
      if (!taken.empty()) out.push_back(taken);
      Advance(taken.size());
      bytes -= taken.size();
    }
    return true;
  }

 private:
  bool ReadByte(uint8_t& byte) {
    if (left_ == 0) return false;
    byte = pieces_[index_][offset_];
    Advance(1);
    return true;
  }

  void Advance(uint64_t bytes) {
    offset_ += bytes;
    left_ -= bytes;
    if (offset_ == pieces_[index_].size() && left_ > 0) {
      ++index_;
      offset_ = 0;
    }
  }

  const std::vector<FloatPayload::Piece>& pieces_;
  uint64_t left_ = 0;
  size_t index_ = 0;
  size_t offset_ = 0;
};

// Where the two fields of a message lie. A field given twice: the last one counts, as in protobuf.
struct Fields {
  std::vector<FloatPayload::Piece> header;
  std::vector<FloatPayload::Piece> payload;
  uint64_t payload_bytes = 0;
};

bool SkipField(uint32_t wire_type, PieceReader& reader) {
  std::vector<FloatPayload::Piece> skipped;
  uint64_t value;
  switch (wire_type) {
    case kVarint:
      return reader.ReadVarint(value);
    case kFixed64:
      return reader.Take(8, skipped);
    case kFixed32:
      return reader.Take(4, skipped);
    case kLengthDelimited:
      return reader.ReadVarint(value) && reader.Take(value, skipped);
    default:
      return false;
  }
}

bool FindFields(PieceReader& reader, Fields& fields) {
  while (reader.left() > 0) {
    uint64_t tag;
    if (!reader.ReadVarint(tag)) return false;
    const uint32_t wire_type = tag & 7;
    const uint64_t field = tag >> 3;
    const bool known = field == kHeaderField || field == kPayloadField;
    if (!known || wire_type != kLengthDelimited) {
      if (field == 0 || !SkipField(wire_type, reader)) return false;
      continue;
    }
    auto& target = field == kHeaderField ? fields.header : fields.payload;
    target.clear();
    uint64_t bytes;
    if (!reader.ReadVarint(bytes) || !reader.Take(bytes, target)) return false;
    if (field == kPayloadField) fields.payload_bytes = bytes;
  }
  return true;
}

template <typename Header>
bool ParseHeader(const std::vector<FloatPayload::Piece>& pieces, Header& header) {
  std::string bytes;
  for (const auto& piece : pieces) {
    if (bytes.size() + piece.size() > kHeaderBytesMax) return false;
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  return header.ParseFromString(bytes);
}

template <typename Header>
absl::StatusOr<FloatPayload> Decode(const grpc::ByteBuffer& buffer, const char* what,
                                    Header& header) {
  auto slices = std::make_shared<std::vector<grpc::Slice>>();
  if (!buffer.Dump(slices.get()).ok()) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": empty message"));
  }
  std::vector<FloatPayload::Piece> pieces;
  pieces.reserve(slices->size());
  for (const grpc::Slice& slice : *slices) {
    if (slice.size() > 0) pieces.emplace_back(slice.begin(), slice.size());
  }
  Fields fields;
  PieceReader reader(pieces);
  if (!FindFields(reader, fields)) {
    return absl::InvalidArgumentError(absl::StrCat(what,
                                                   ": not a protobuf message: it breaks off or "
                                                   "holds a malformed field"));
  }
  if (!ParseHeader(fields.header, header)) {
    return absl::InvalidArgumentError(absl::StrCat(what, ".header: malformed"));
  }
  if (fields.payload_bytes % sizeof(float) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(what, ".payload: ", fields.payload_bytes,
                                                   " bytes are not whole float32 values"));
  }
  return FloatPayload(std::move(slices), std::move(fields.payload));
}

}  // namespace

grpc::ByteBuffer EncodePush(const v1::ExchangeHeader& header, std::span<const float> values,
                            std::shared_ptr<const void> owner) {
  return Encode(header, values, std::move(owner));
}

grpc::ByteBuffer EncodePullReply(const v1::VersionHeader& header, std::span<const float> values,
                                 std::shared_ptr<const void> owner) {
  return Encode(header, values, std::move(owner));
}

absl::StatusOr<FloatPayload> DecodePush(const grpc::ByteBuffer& buffer,
                                        v1::ExchangeHeader& header) {
  return Decode(buffer, "PushRequest", header);
}

absl::StatusOr<FloatPayload> DecodePullReply(const grpc::ByteBuffer& buffer,
                                             v1::VersionHeader& header) {
  return Decode(buffer, "PullReply", header);
}

}  // namespace leeway
