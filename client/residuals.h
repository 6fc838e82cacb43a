// What a sender's encodings have lost so far: error feedback (Seide et al. 2014; Karimireddy et al.
// 2019, algorithm 2), block by block.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/blocks.h"
#include "common/buffer.h"
#include "common/codec/codec.h"

namespace leeway {

// Keeps the residual after the latest contribution of each block and the one before it, so that an
// exchange that is broken off can be done again. Different blocks may be used by different threads
// at once; one block, and all of Read, Undo and Set, by one at a time. `layout` outlives it.
class Residuals {
 public:
  explicit Residuals(const BlockLayout& layout);

  // The contribution of `clock` for the block. Clocks rise; the latest may be encoded anew, and
  // from the same values gives the same bytes.
  std::string Encode(const Codec& codec, uint32_t block, uint64_t clock,
                     std::span<const float> values);

  // What the contributions of clocks before `clock` have lost, of which `clock` may be the latest
  // or any later one. The whole vector.
  void Read(uint64_t clock, std::span<float> out) const;
  // The contributions of `clock` and later count for nothing: neither does what they have lost or
  // made good. `clock` is the latest or a later one.
  void Undo(uint64_t clock);
  // Before the first contribution.
  void Set(std::span<const float> values);

 private:
  const BlockLayout& layout_;
  FloatBuffer after_;
  FloatBuffer before_;
  // By block, the latest encoded.
  std::vector<std::optional<uint64_t>> clocks_;
};

}  // namespace leeway
