#include "worker/data/partition.h"

#include <algorithm>
#include <numeric>

#include "common/philox.h"
#include "tests/catch.h"
#include "worker/data/epoch_order.h"
#include "worker/data/holdout.h"

namespace leeway::partition {
namespace {

// Returns `count` labels; class c is about c + 1 times as frequent as class 0.
std::vector<float> Labels(size_t count, uint64_t classes) {
  RandomStream draws(3, RandomPurpose::kGenerate);
  std::vector<float> labels(count);
  for (float& label : labels) {
    const uint64_t place = draws.Below(classes * (classes + 1) / 2);
    uint64_t c = 0;
    while ((c + 1) * (c + 2) / 2 <= place) ++c;
    label = static_cast<float>(c);
  }
  return labels;
}

void RequireComplete(const Shares& shares, size_t count) {
  std::vector<uint32_t> all;
  for (const auto& share : shares) all.insert(all.end(), share.begin(), share.end());
  std::sort(all.begin(), all.end());
  std::vector<uint32_t> expected(count);
  std::iota(expected.begin(), expected.end(), 0);
  REQUIRE(all == expected);
}

std::vector<size_t> ClassCounts(const std::vector<uint32_t>& share,
                                const std::vector<float>& labels, size_t classes) {
  std::vector<size_t> counts(classes);
  for (uint32_t row : share) ++counts[static_cast<size_t>(labels[row])];
  return counts;
}

size_t Spread(const std::vector<size_t>& v) {
  const auto [low, high] = std::minmax_element(v.begin(), v.end());
  return *high - *low;
}

TEST_CASE("Stratified shares are disjoint, complete and have the classes in equal proportions") {
  for (uint32_t workers : {1, 2, 3, 7, 64}) {
    for (size_t count : {0, 1, 5, 63, 1000}) {
      const std::vector<float> labels = Labels(count, 5);
      const Shares shares = DealStratified(labels, 11, workers);
      REQUIRE(shares.size() == workers);
      RequireComplete(shares, count);
      std::vector<size_t> sizes;
      for (const auto& share : shares) sizes.push_back(share.size());
      CHECK(Spread(sizes) <= 1);
      for (size_t c = 0; c < 5; ++c) {
        std::vector<size_t> of_class;
        for (const auto& share : shares) of_class.push_back(ClassCounts(share, labels, 5)[c]);
        CHECK(Spread(of_class) <= 1);
      }
    }
  }
}

TEST_CASE("Label-skewed shares are disjoint, complete and leave no worker without examples") {
  for (double alpha : {1e-6, 0.01, 0.5, 10.0, 1e6}) {
    for (uint32_t workers : {1, 2, 3, 20}) {
      for (size_t count : {0, 1, 20, 50, 1000}) {
        const Shares shares = DealLabelSkewed(Labels(count, 4), alpha, 5, workers);
        REQUIRE(shares.size() == workers);
        RequireComplete(shares, count);
        const auto empty =
            std::count_if(shares.begin(), shares.end(), [](const auto& s) { return s.empty(); });
        CHECK(static_cast<size_t>(empty) == (count >= workers ? 0 : workers - count));
      }
    }
  }
}

TEST_CASE("The smaller alpha, the more skewed are the shares") {
  const std::vector<float> labels = Labels(20000, 10);
  // The share of the largest class in a worker's examples, as a mean over the workers.
  const auto skew = [&](double alpha) {
    double sum = 0;
    for (const auto& share : DealLabelSkewed(labels, alpha, 5, 8)) {
      const auto counts = ClassCounts(share, labels, 10);
      sum += static_cast<double>(*std::max_element(counts.begin(), counts.end())) / share.size();
    }
    return sum / 8;
  };
  const double even = 10 / 55.0;
  CHECK(skew(1e5) < even + 0.02);
  CHECK(skew(0.5) > even + 0.1);
  CHECK(skew(0.05) > skew(0.5) + 0.1);
}

TEST_CASE("Shares are a function of the seed") {
  const std::vector<float> labels = Labels(500, 3);
  CHECK(DealStratified(labels, 1, 4) == DealStratified(labels, 1, 4));
  CHECK(DealStratified(labels, 1, 4) != DealStratified(labels, 2, 4));
  CHECK(DealLabelSkewed(labels, 0.5, 1, 4) == DealLabelSkewed(labels, 0.5, 1, 4));
  CHECK(DealLabelSkewed(labels, 0.5, 1, 4) != DealLabelSkewed(labels, 0.5, 2, 4));
}

TEST_CASE("The held-out examples are a share of each file, never all, and drawn by seed and file") {
  const auto count = [](const std::vector<bool>& held) {
    return std::count(held.begin(), held.end(), true);
  };
  CHECK(count(HeldOut(1, 0, 1000, 0.2)) == 200);
  CHECK(count(HeldOut(1, 0, 3, 0.99)) == 2);
  CHECK(count(HeldOut(1, 0, 1, 0.5)) == 0);
  CHECK(count(HeldOut(1, 0, 1000, 0)) == 0);
  CHECK(HeldOut(1, 0, 0, 0.5).empty());
  CHECK(HeldOut(1, 2, 1000, 0.2) == HeldOut(1, 2, 1000, 0.2));
  CHECK(HeldOut(1, 2, 1000, 0.2) != HeldOut(1, 3, 1000, 0.2));
  CHECK(HeldOut(1, 2, 1000, 0.2) != HeldOut(2, 2, 1000, 0.2));
}

TEST_CASE("An epoch's order is a permutation, another one each epoch, seed and rank") {
  EpochOrder::Rows rows(100);
  std::iota(rows.begin(), rows.end(), 7);
  const EpochOrder shared(1, std::nullopt, rows), own(1, 0, rows), other(2, std::nullopt, rows);
  const EpochOrder::Rows first = *shared.Of(0);
  EpochOrder::Rows sorted = first;
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted == rows);
  CHECK(first != rows);
  CHECK(*shared.Of(1) != first);
  CHECK(*shared.Of(0) == first);
  CHECK(*own.Of(0) != first);
  CHECK(*other.Of(0) != first);
  CHECK(shared.Of(0) == shared.Of(0));  // the cached share
}

}  // namespace
}  // namespace leeway::partition
