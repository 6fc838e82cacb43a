#include "common/update/combine.h"

#include <bit>

#include "common/update/loop.h"

namespace leeway {
namespace {

constexpr size_t kGatherTiles = 2;

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
    : contributions_(contributions), coefficients_(coefficients), centre_(centre) {
  const size_t levels = std::bit_width(contributions.size()) + 1;
  scratch_ = std::make_unique_for_overwrite<float[]>((kGatherTiles + levels) * kMaxTile);
}

Combiner::Combiner(std::span<const FloatPayload* const> contributions,
                   std::span<const float> coefficients)
    : Combiner(contributions, coefficients, nullptr) {}

Combiner Combiner::Differences(std::span<const FloatPayload* const> contributions,
                               const float* centre) {
  return Combiner(contributions, {}, centre);
}

const float* Combiner::Tile(size_t offset, size_t count) {
  if (centre_ == nullptr && contributions_.size() == 1 && coefficients_[0] == 1.0f) {
    return contributions_[0]->Tile(offset, count, Scratch(0));
  }
  Sum(0, contributions_.size(), {offset, count}, kGatherTiles);
  return Scratch(kGatherTiles);
}

void Combiner::Sum(size_t first, size_t k, Range range, size_t target) {
  float* out = Scratch(target);
  if (k == 1) return Leaf(first, range, out);
  if (k == 2) return Pair(first, range, out);
  const size_t left = std::bit_floor(k - 1);
  Sum(first, left, range, target);
  Sum(first + left, k - left, range, target + 1);
  const float* right = Scratch(target + 1);
  for (size_t i = 0; i < range.count; ++i) out[i] += right[i];
}

void Combiner::Leaf(size_t i, Range range, float* out) {
  const float* a = contributions_[i]->Tile(range.offset, range.count, Scratch(0));
  if (centre_ != nullptr) {
    const float* centre = centre_ + range.offset;
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t j = 0; j < range.count; ++j) out[j] = a[j] - centre[j];
    return;
  }
  const float c = coefficients_[i];
  LEEWAY_INDEPENDENT_ITERATIONS
  for (size_t j = 0; j < range.count; ++j) out[j] = c * a[j];
}

// Two leaves and their sum in one pass.
void Combiner::Pair(size_t i, Range range, float* out) {
  const float* a = contributions_[i]->Tile(range.offset, range.count, Scratch(0));
  const float* b = contributions_[i + 1]->Tile(range.offset, range.count, Scratch(1));
  if (centre_ != nullptr) {
    const float* centre = centre_ + range.offset;
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t j = 0; j < range.count; ++j) out[j] = (a[j] - centre[j]) + (b[j] - centre[j]);
    return;
  }
  const float ca = coefficients_[i], cb = coefficients_[i + 1];
  LEEWAY_INDEPENDENT_ITERATIONS
  for (size_t j = 0; j < range.count; ++j) out[j] = ca * a[j] + cb * b[j];
}

}  // namespace leeway
