#include "server/store/reply_encoder.h"

#include <algorithm>
#include <utility>

#include "common/codec/encoded.h"
#include "common/update/loop.h"

namespace leeway {

ReplyEncoder::ReplyEncoder(std::shared_ptr<const CodecPlan> plan, const BlockStore& store)
    : plan_(std::move(plan)), store_(store) {
  const BlockLayout& layout = store.layout();
  for (uint32_t block = 0; plan_ != nullptr && block < layout.blocks(); ++block) {
    keeps_shadows_ |= CarriesChanges(block);
  }
}

v1::Encoding ReplyEncoder::encoding(uint32_t block) const {
  return plan_ == nullptr ? v1::ENCODING_RAW : plan_->weights(block).encoding();
}

std::shared_ptr<const std::string> ReplyEncoder::Encode(uint32_t block,
                                                        std::span<const float> values) const {
  const Codec& codec = plan_->weights(block);
  auto bytes = std::make_shared<std::string>(codec.MaxBytes(values.size()), '\0');
  bytes->resize(
      codec.Encode(values, {}, {reinterpret_cast<uint8_t*>(bytes->data()), bytes->size()}));
  bytes->shrink_to_fit();
  return bytes;
}

SentVersion ReplyEncoder::First(uint32_t block, const SharedFloats& weights,
                                SharedFloats shadow) const {
  if (encoding(block) == v1::ENCODING_RAW) return {};
  if (!CarriesChanges(block)) return {Encode(block, weights.span()), {}};
  return {nullptr, shadow ? std::move(shadow) : weights};
}

SentVersion ReplyEncoder::Next(uint32_t block, const SentVersion& before,
                               std::span<const float> weights) const {
  if (encoding(block) == v1::ENCODING_RAW) return {};
  if (!CarriesChanges(block)) return {Encode(block, weights), {}};
  return NextChange(block, before, weights);
}

SentVersion ReplyEncoder::NextChange(uint32_t block, const SentVersion& before,
                                     std::span<const float> weights) const {
  SharedFloats shadow = store_.AllocateSlot(block);
  float* const target = shadow.mutable_data();
  const float* const old = before.shadow.span().data();
  const size_t count = weights.size();
  LEEWAY_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) target[i] = weights[i] - old[i];
  auto bytes = Encode(block, {target, count});
  const auto change = EncodedValues::Open(
      encoding(block), nullptr, {{reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()}},
      count);
  if (!change.ok()) {
    // The change exceeds the largest float, so workers get the weights themselves.
    std::copy(weights.begin(), weights.end(), target);
    return {nullptr, std::move(shadow)};
  }
  // This is the sum that a worker computes, too.
  std::copy_n(old, count, target);
  (*change)->AddTo({target, count});
  return {std::move(bytes), std::move(shadow)};
}

}  // namespace leeway
