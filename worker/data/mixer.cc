#include "worker/data/mixer.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace leeway {
namespace {

double DrawBeta(double alpha, RandomStream& draws) {
  const double x = draws.Gamma(alpha);
  const double y = draws.Gamma(alpha);
  // For a small alpha both draws may underflow to 0. For such an alpha almost all shares are 0 or
  // 1.
  if (x + y == 0) return static_cast<double>(draws.Below(2));
  return x / (x + y);
}

// Computes to = share to + (1 - share) from.
void Mix(float share, std::span<const float> from, std::span<float> to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = share * to[i] + (1 - share) * from[i];
}

// Mixes each row with the row whose number is in `partners`, a permutation. Follows the cycles of
// the permutation, so that a copy of one row is enough.
void MixRows(float share, const std::vector<uint32_t>& partners, std::vector<float>& values) {
  const size_t width = values.size() / partners.size();
  const auto row = [&](size_t i) { return std::span(values).subspan(i * width, width); };
  std::vector<bool> mixed(partners.size());
  std::vector<float> first(width);
  for (size_t begin = 0; begin < partners.size(); ++begin) {
    if (mixed[begin]) continue;
    std::ranges::copy(row(begin), first.begin());
    size_t at = begin;
    for (; partners[at] != begin; at = partners[at]) {
      Mix(share, row(partners[at]), row(at));
      mixed[at] = true;
    }
    Mix(share, first, row(at));
    mixed[at] = true;
  }
}

}  // namespace

void Mixer::Apply(RandomStream draws, Batch& batch) const {
  if (alpha_ == 0 || batch.size == 0) return;
  batch.share = static_cast<float>(DrawBeta(alpha_, draws));
  std::vector<uint32_t> partners(batch.size);
  std::iota(partners.begin(), partners.end(), 0);
  draws.Shuffle(partners);
  MixRows(batch.share, partners, batch.features);
  for (const uint32_t partner : partners) batch.other_labels.push_back(batch.labels[partner]);
}

}  // namespace leeway
