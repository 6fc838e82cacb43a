#include "client/calls/residuals.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace leeway {

EncodedContribution EncodeBytes(const Codec& codec, std::span<const float> values,
                                std::span<float> residual) {
  auto bytes = std::make_shared<std::string>(codec.MaxBytes(values.size()), '\0');
  auto* const data = reinterpret_cast<uint8_t*>(bytes->data());
  const size_t size = codec.Encode(values, residual, {data, bytes->size()});
  return {{data, size}, std::move(bytes)};
}

Residuals::Residuals(const BlockLayout& layout)
    : layout_(layout), after_(layout.total()), before_(layout.total()), clocks_(layout.blocks()) {}

EncodedContribution Residuals::Encode(const Codec& codec, uint32_t block, uint64_t clock,
                                      std::span<const float> values) {
  const ElementRange range = layout_.Range(block);
  const std::span<float> after = after_.span().subspan(range.offset, range.count);
  const std::span<float> before = before_.span().subspan(range.offset, range.count);
  if (clocks_[block] == clock) {
    std::copy(before.begin(), before.end(), after.begin());
  } else {
    std::copy(after.begin(), after.end(), before.begin());
  }
  clocks_[block] = clock;
  return EncodeBytes(codec, values, after);
}

absl::Status Residuals::Read(uint64_t clock, std::span<float> out) const {
  for (uint32_t block = 0; block < layout_.blocks(); ++block) {
    const ElementRange range = layout_.Range(block);
    const bool undo = clocks_[block].has_value() && *clocks_[block] >= clock;
    const FloatBuffer& from = undo ? before_ : after_;
    std::copy_n(from.data() + range.offset, range.count, out.data() + range.offset);
  }
  return absl::OkStatus();
}

void Residuals::Undo(uint64_t clock) {
  for (uint32_t block = 0; block < layout_.blocks(); ++block) {
    if (!clocks_[block].has_value() || *clocks_[block] < clock) continue;
    const ElementRange range = layout_.Range(block);
    std::copy_n(before_.data() + range.offset, range.count, after_.data() + range.offset);
    clocks_[block].reset();
  }
}

absl::Status Residuals::Set(std::span<const float> values) {
  std::copy(values.begin(), values.end(), after_.data());
  std::fill(clocks_.begin(), clocks_.end(), std::nullopt);
  return absl::OkStatus();
}

}  // namespace leeway
