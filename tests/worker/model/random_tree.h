// Models drawn at random.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/philox.h"
#include "worker/data/shape.h"

namespace leeway::testing {

// Trees that keep kImage's shape, drawn from a seed. Every kind of layer may have every kind of
// neighbour, on either side of a branch.
class RandomTree {
 public:
  static constexpr ImageShape kImage{4, 4, 3};

  explicit RandomTree(uint64_t seed) : stream_(seed, RandomPurpose::kGenerate) {}

  std::string Layers(int depth, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) absl::StrAppend(&text, "layers { ", One(depth), " } ");
    return text;
  }

 private:
  std::string One(int depth) {
    const uint64_t kinds = depth > 0 ? 14 : 9;
    switch (stream_.Below(kinds)) {
      case 0:
        return "relu {}";
      case 1:
        return "tanh {}";
      case 2:
        return "gelu {}";
      case 3:
        return "batch_norm {}";
      case 4:
        return "dropout { rate: 0.3 }";
      case 5:
        return "conv2d { filters: 3 kernel: 3 padding: 1 }";
      case 6:
        return "conv2d { filters: 3 kernel: 3 padding: 1 groups: 3 }";
      case 7:
        return "layer_norm {}";
      case 8:
        return "relu6 {}";
      case 9:
        return absl::StrCat("sequence { ", Layers(depth - 1, 1 + stream_.Below(3)), "}");
      case 10:
        return absl::StrCat("repeat { times: 2 ", Layers(depth - 1, 1 + stream_.Below(2)), "}");
      case 11:
        return Residual(depth - 1);
      case 12:
        return Recompute(depth - 1);
      default:
        return Concat(depth - 1);
    }
  }

  std::string Residual(int depth) {
    std::string text = absl::StrCat("residual { ", Layers(depth, 1 + stream_.Below(3)));
    const uint64_t shortcut = stream_.Below(3);
    for (uint64_t i = 0; i < shortcut; ++i)
      absl::StrAppend(&text, "shortcut { ", One(depth), " } ");
    return text + "}";
  }

  // A recompute within a recompute would be refused.
  std::string Recompute(int depth) {
    const bool inner = std::exchange(recomputes_, true);
    std::string text = absl::StrCat(inner ? "sequence { " : "recompute { ",
                                    Layers(depth, 1 + stream_.Below(3)), "}");
    recomputes_ = inner;
    return text;
  }

  // Ends with three channels again.
  std::string Concat(int depth) {
    return absl::StrCat("sequence { layers { concat { branches { ", Layers(depth, 1),
                        "} branches { ", Layers(depth, 2),
                        "} } } layers { conv2d { filters: 3 kernel: 1 } } }");
  }

  RandomStream stream_;
  bool recomputes_ = false;
};

}  // namespace leeway::testing
