// The answer to a request that reads a block.
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
  // Keeps the memory of the bytes alive.
  std::shared_ptr<const void> owner;
};

// According to a reader's request: what the reader already has, and which encodings it understands.
struct ReaderOptions {
  static ReaderOptions Of(const v1::ExchangeHeader& header, ReadKind kind = ReadKind::kAtClock);

  // The version that the reader already has.
  std::optional<uint64_t> have = std::nullopt;
  // An encoding that the reader understands besides RAW.
  v1::Encoding encoding = v1::ENCODING_RAW;
  ReadKind kind = ReadKind::kAtClock;
};

struct BlockReading {
  // The values, if they are sent without encoding. Empty if `encoded` is set, if header.unchanged
  // is set, and in an answer that only acknowledges.
  SharedFloats values;
  // The values in header.encoding. Null if the encoding is RAW.
  std::shared_ptr<const std::string> encoded;
  v1::VersionHeader header;
  bool duplicate = false;

  bool has_payload() const { return values || encoded != nullptr; }
  // May be called once.
  PayloadBytes TakePayload();
  // Sets the answer to `weights`, which is version header.version. The form is the best one for
  // `reader`: the bytes of `sent` in the block's `encoding`, or the values without encoding.
  void Give(SharedFloats weights, const SentVersion& sent, v1::Encoding encoding,
            const ReaderOptions& reader);
};

}  // namespace leeway
