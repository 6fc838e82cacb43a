#include "worker/data/partition.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "common/philox.h"

namespace leeway {
namespace {

using Classes = std::map<uint32_t, std::vector<uint32_t>>;

Classes RowsByClass(std::span<const float> labels) {
  Classes classes;
  for (size_t i = 0; i < labels.size(); ++i) {
    classes[static_cast<uint32_t>(labels[i])].push_back(static_cast<uint32_t>(i));
  }
  return classes;
}

// Draws from Dirichlet(alpha, ...) as Gamma draws divided by their sum.
std::vector<double> DrawProportions(RandomStream& draws, double alpha, uint32_t workers) {
  std::vector<double> p(workers);
  double sum = 0;
  for (double& x : p) sum += x = draws.Gamma(alpha);
  if (sum > 0 && std::isfinite(sum)) {
    for (double& x : p) x /= sum;
  } else {
    // Alpha is so small that every Gamma draw was rounded to 0. In the limit of small alpha one
    // worker gets all examples.
    std::fill(p.begin(), p.end(), 0.0);
    p[draws.Below(workers)] = 1;
  }
  return p;
}

void FeedTheEmpty(Shares& shares) {
  for (std::vector<uint32_t>& share : shares) {
    if (!share.empty()) continue;
    auto& largest =
        *std::max_element(shares.begin(), shares.end(),
                          [](const auto& a, const auto& b) { return a.size() < b.size(); });
    if (largest.size() < 2) return;
    share.push_back(largest.back());
    largest.pop_back();
  }
}

}  // namespace

Shares DealStratified(std::span<const float> labels, uint64_t seed, uint32_t workers) {
  Shares shares(workers);
  // `next` continues from class to class, so that the remainders do not all go to the first
  // workers.
  size_t next = 0;
  for (auto& [label, rows] : RowsByClass(labels)) {
    std::vector<uint32_t> shuffled = rows;
    RandomStream draws(seed, RandomPurpose::kPartition, {label});
    draws.Shuffle(shuffled);
    for (uint32_t row : shuffled) shares[next++ % workers].push_back(row);
  }
  return shares;
}

Shares DealLabelSkewed(std::span<const float> labels, double alpha, uint64_t seed,
                       uint32_t workers) {
  Shares shares(workers);
  for (auto& [label, rows] : RowsByClass(labels)) {
    std::vector<uint32_t> shuffled = rows;
    RandomStream draws(seed, RandomPurpose::kPartition, {label});
    draws.Shuffle(shuffled);
    const std::vector<double> p = DrawProportions(draws, alpha, workers);
    const double count = static_cast<double>(shuffled.size());
    double cumulative = 0;
    size_t begin = 0;
    for (uint32_t w = 0; w < workers; ++w) {
      cumulative += p[w];
      size_t end = static_cast<size_t>(std::round(std::min(cumulative, 1.0) * count));
      if (w + 1 == workers) end = shuffled.size();
      shares[w].insert(shares[w].end(), shuffled.begin() + begin, shuffled.begin() + end);
      begin = end;
    }
  }
  FeedTheEmpty(shares);
  return shares;
}

}  // namespace leeway
