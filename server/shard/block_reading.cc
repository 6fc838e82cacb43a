#include "server/shard/block_reading.h"

#include <utility>

#include "common/codec/encoded.h"

namespace leeway {

ReaderOptions ReaderOptions::Of(const v1::ExchangeHeader& header, ReadKind kind) {
  ReaderOptions options{.kind = kind};
  if (header.has_have_version()) options.have = header.have_version();
  options.encoding = header.reply_encoding();
  return options;
}

PayloadBytes BlockReading::TakePayload() {
  if (encoded != nullptr) {
    const std::span bytes(reinterpret_cast<const uint8_t*>(encoded->data()), encoded->size());
    return {bytes, std::move(encoded)};
  }
  auto owner = std::make_shared<SharedFloats>(std::move(values));
  const std::span<const float> span = owner->span();
  return {{reinterpret_cast<const uint8_t*>(span.data()), span.size_bytes()}, std::move(owner)};
}

void BlockReading::Give(SharedFloats weights, const SentVersion& sent, v1::Encoding encoding,
                        const ReaderOptions& reader) {
  if (encoding == v1::ENCODING_RAW || reader.encoding != encoding) {
    values = std::move(weights);
    return;
  }
  const bool change = CarriesChanges(encoding);
  const uint64_t before = header.version() - 1;
  if (sent.bytes == nullptr || (change && reader.have != before)) {
    values = change ? sent.shadow : std::move(weights);
    return;
  }
  encoded = sent.bytes;
  header.set_encoding(encoding);
  if (change) header.set_since_version(before);
}

}  // namespace leeway
