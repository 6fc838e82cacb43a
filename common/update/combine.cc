#include "common/update/combine.h"

#include <algorithm>
#include <bit>

#include "common/update/loop.h"

namespace leeway {
namespace {

// Returns one float (T = OneFloat) or eight floats from element j on.
template <typename T>
typename T::Value Load(const uint8_t* floats, size_t j) {
  return T::Load(floats + j * sizeof(float));
}

// These structs compute the tree's leaves, the values that N contributions add, from local copies.
template <size_t N>
struct Products {
  explicit Products(const float* given) { std::copy_n(given, N, coefficients); }
  template <typename T>
  typename T::Value At(size_t i, const uint8_t* values, size_t j) const {
    return coefficients[i] * Load<T>(values, j);
  }
  float coefficients[N];
};
template <size_t N>
struct Differences {
  explicit Differences(const float* given) : centre(reinterpret_cast<const uint8_t*>(given)) {}
  template <typename T>
  typename T::Value At(size_t, const uint8_t* values, size_t j) const {
    return Load<T>(values, j) - Load<T>(centre, j);
  }
  const uint8_t* centre;
};
template <size_t N>
struct WeightedDifferences : Differences<N> {
  WeightedDifferences(const float* given, const float* centre) : Differences<N>(centre) {
    std::copy_n(given, N, coefficients);
  }
  template <typename T>
  typename T::Value At(size_t i, const uint8_t* values, size_t j) const {
    return coefficients[i] * Differences<N>::template At<T>(i, values, j);
  }
  float coefficients[N];
};

// Sums the balanced tree over leaves [kFirst, kFirst + N).
template <typename T, size_t kFirst, size_t N, typename Leaf>
inline typename T::Value Tree(const uint8_t* const* tiles, const Leaf& leaf, size_t j) {
  if constexpr (N == 1) {
    return leaf.template At<T>(kFirst, tiles[kFirst], j);
  } else {
    return Tree<T, kFirst, N / 2>(tiles, leaf, j) + Tree<T, kFirst + N / 2, N / 2>(tiles, leaf, j);
  }
}

// Sums N contributions in one pass. Reading N concurrent streams keeps the memory busy.
template <size_t N, bool kAdd, typename Leaf>
void SumLeaves(const uint8_t* const* given, const Leaf& given_leaf, size_t count, float* out) {
  const uint8_t* tiles[N];
  std::copy_n(given, N, tiles);
  const Leaf leaf = given_leaf;
  const auto sum = [&]<typename T>(size_t j, T) {
    const typename T::Value value = Tree<T, 0, N>(tiles, leaf, j);
    T::Store(kAdd ? T::Load(out + j) + value : value, out + j);
  };
  size_t j = 0;
  for (; j + 8 <= count; j += 8) sum(j, EightFloats());
  for (; j < count; ++j) sum(j, OneFloat());
}

template <size_t N>
void SumLeaves(const uint8_t* const* tiles, const float* coefficients, const float* centre,
               size_t count, float* out, bool add) {
  const auto sum = [&](const auto& leaf) {
    add ? SumLeaves<N, true>(tiles, leaf, count, out)
        : SumLeaves<N, false>(tiles, leaf, count, out);
  };
  if (centre == nullptr) {
    sum(Products<N>(coefficients));
  } else if (coefficients == nullptr) {
    sum(Differences<N>(centre));
  } else {
    sum(WeightedDifferences<N>(coefficients, centre));
  }
}

}  // namespace

std::vector<float> MeanCoefficients(std::span<const uint64_t> examples) {
  double sum = 0;
  for (uint64_t n : examples) sum += static_cast<double>(n);
  std::vector<float> coefficients;
  coefficients.reserve(examples.size());
  for (uint64_t n : examples) {
    coefficients.push_back(sum > 0 ? static_cast<float>(static_cast<double>(n) / sum) : 0.0f);
  }
  return coefficients;
}

Combiner::Combiner(std::span<const FloatPayload* const> contributions,
                   std::span<const float> coefficients, const float* centre)
    : contributions_(contributions),
      coefficients_(coefficients),
      centre_(centre),
      parts_(contributions.size()) {
  readers_.reserve(contributions.size());
  for (const FloatPayload* payload : contributions) readers_.emplace_back(*payload);
}

Combiner::Combiner(std::span<const FloatPayload* const> contributions,
                   std::span<const float> coefficients)
    : Combiner(contributions, coefficients, nullptr) {}

Combiner Combiner::Differences(std::span<const FloatPayload* const> contributions,
                               const float* centre) {
  return Combiner(contributions, {}, centre);
}

Combiner Combiner::Differences(std::span<const FloatPayload* const> contributions,
                               std::span<const float> coefficients, const float* centre) {
  return Combiner(contributions, coefficients, centre);
}

Combiner::Part Combiner::PartAt(size_t index, size_t offset) {
  const size_t count = std::max<size_t>(readers_[index].Contiguous(offset), 1);
  return {offset, offset + count, readers_[index].InPlace(offset)};
}

size_t Combiner::Run(size_t offset, size_t count) {
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    if (offset - part.begin >= part.end - part.begin) part = PartAt(i, offset);
    count = std::min(count, part.end - offset);
  }
  return count;
}

const float* Combiner::Tile(size_t offset, size_t count) {
  if (centre_ == nullptr && readers_.size() == 1 && coefficients_[0] == 1.0f) {
    const uint8_t* lone = Bytes(0, {offset, count}, gathered_[0]);
    if (reinterpret_cast<uintptr_t>(lone) % alignof(float) == 0) {
      return reinterpret_cast<const float*>(lone);
    }
  }
  Sum(0, readers_.size(), {offset, count}, sum_, 0);
  return sum_;
}

void Combiner::Sum(size_t first, size_t k, Range range, float* out, size_t level) {
  if (std::has_single_bit(k) && k <= kMaxLeaves) return Leaves(first, k, range, out, false);
  const size_t left = std::bit_floor(k - 1), right = k - left;
  Sum(first, left, range, out, level);
  if (std::has_single_bit(right) && right <= kMaxLeaves) {
    return Leaves(first + left, right, range, out, true);
  }
  if (levels_ == nullptr) {
    levels_ = std::make_unique_for_overwrite<float[]>(std::bit_width(readers_.size()) * kMaxTile);
  }
  float* other = levels_.get() + level * kMaxTile;
  Sum(first + left, right, range, other, level + 1);
  LEEWAY_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < range.count; ++i) out[i] += other[i];
}

void Combiner::Leaves(size_t first, size_t k, Range range, float* out, bool add) {
  const uint8_t* tiles[kMaxLeaves];
  for (size_t i = 0; i < k; ++i) {
    tiles[i] = Bytes(first + i, range, gathered_[i]);
  }
  const float* coefficients = coefficients_.empty() ? nullptr : coefficients_.data() + first;
  const float* centre = centre_ == nullptr ? nullptr : centre_ + range.offset;
  switch (k) {
    case 1:
      return SumLeaves<1>(tiles, coefficients, centre, range.count, out, add);
    case 2:
      return SumLeaves<2>(tiles, coefficients, centre, range.count, out, add);
    case 4:
      return SumLeaves<4>(tiles, coefficients, centre, range.count, out, add);
    default:
      return SumLeaves<8>(tiles, coefficients, centre, range.count, out, add);
  }
}

}  // namespace leeway
