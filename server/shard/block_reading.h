// What a reader of a block gets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/read_kind.h"
#include "leeway/v1/parameter_server.pb.h"
#include "server/store/reply_encoder.h"
#include "server/store/shared_floats.h"

namespace leeway {

struct PayloadBytes {
  std::span<const uint8_t> bytes;
  // Keeps their memory.
  std::shared_ptr<const void> owner;
};

// What a reader has and understands, as its request says.
struct ReaderOptions {
  static ReaderOptions Of(const v1::ExchangeHeader& header, ReadKind kind = ReadKind::kAtClock);

  // The version that it has in its memory.
  std::optional<uint64_t> have = std::nullopt;
  // Beside RAW.
  v1::Encoding encoding = v1::ENCODING_RAW;
  ReadKind kind = ReadKind::kAtClock;
};

struct BlockReading {
  // Empty for a mere acknowledgement, where header.unchanged, and where `encoded` is in its place.
  SharedFloats values;
  // In header.encoding; null: that is RAW.
  std::shared_ptr<const std::string> encoded;
  v1::VersionHeader header;
  bool duplicate = false;

  bool has_payload() const { return values || encoded != nullptr; }
  // Once.
  PayloadBytes TakePayload();
  // Puts version header.version, which is `weights`, in as `reader` can use it best: as it was sent
  // in the block's `encoding`, or as it is.
  void Give(SharedFloats weights, const SentVersion& sent, v1::Encoding encoding,
            const ReaderOptions& reader);
};

}  // namespace leeway
