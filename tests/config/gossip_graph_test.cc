// Who mixes with whom in gossip, and how fast all weights approach their mean.
#include "config/gossip_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/philox.h"
#include "tests/catch.h"

namespace leeway::gossip_graph {
namespace {

constexpr uint64_t kSeed = 7;

using Vector = std::vector<double>;

v1::Gossip With(v1::GossipGraph graph, uint32_t group = 2) {
  v1::Gossip gossip;
  gossip.set_graph(graph);
  gossip.set_group(group);
  return gossip;
}

// The weights of all workers at a clock: a row for each worker that averages.
std::vector<Vector> MatrixOf(const v1::Gossip& gossip, uint64_t clock, uint32_t workers) {
  std::vector<Vector> matrix(workers, Vector(workers));
  for (uint32_t rank = 0; rank < workers; ++rank) {
    for (const Neighbour& other : NeighboursOf(gossip, kSeed, clock, rank, workers)) {
      matrix[rank][other.rank] += other.weight;
    }
  }
  return matrix;
}

Vector Times(const std::vector<Vector>& matrix, const Vector& x, bool transposed = false) {
  Vector y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < x.size(); ++j) y[i] += (transposed ? matrix[j][i] : matrix[i][j]) * x[j];
  }
  return y;
}

double SquareOf(const Vector& x) { return std::inner_product(x.begin(), x.end(), x.begin(), 0.0); }

void Centre(Vector& x) {
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / x.size();
  for (double& value : x) value -= mean;
}

// Returns normal draws whose mean is 0.
Vector Centred(RandomStream& draws, uint32_t workers) {
  Vector x(workers);
  for (double& value : x) value = draws.Normal();
  Centre(x);
  return x;
}

// Returns the largest factor by which the clocks [0, clocks) change the length of a vector with
// mean 0, by a power iteration.
double LargestFactor(const v1::Gossip& gossip, uint32_t clocks, uint32_t workers) {
  std::vector<std::vector<Vector>> matrices;
  for (uint32_t clock = 0; clock < clocks; ++clock) {
    matrices.push_back(MatrixOf(gossip, clock, workers));
  }
  RandomStream draws(3, RandomPurpose::kGenerate);
  Vector x = Centred(draws, workers);
  double factor = 0;
  for (int i = 0; i < 3000; ++i) {
    // Rounding errors have a mean, which never shrinks.
    Centre(x);
    const double before = std::sqrt(SquareOf(x));
    if (before < 1e-12) return 0;
    for (double& value : x) value /= before;
    for (const auto& matrix : matrices) x = Times(matrix, x);
    factor = std::sqrt(SquareOf(x));
    for (auto matrix = matrices.rbegin(); matrix != matrices.rend(); ++matrix) {
      x = Times(*matrix, x, true);
    }
  }
  return factor;
}

TEST_CASE("gossip keeps the mean of all weights, with every graph and number of workers") {
  for (const v1::GossipGraph graph :
       {v1::GOSSIP_GRAPH_RING, v1::GOSSIP_GRAPH_EXPONENTIAL, v1::GOSSIP_GRAPH_RANDOM}) {
    for (const uint32_t workers : {1, 2, 3, 4, 5, 7, 8, 13}) {
      for (const uint64_t clock : {0, 1, 2, 3, 1000001}) {
        CAPTURE(graph, workers, clock);
        const std::vector<Vector> matrix = MatrixOf(With(graph, 3), clock, workers);
        for (uint32_t i = 0; i < workers; ++i) {
          double row = 0, column = 0;
          for (uint32_t j = 0; j < workers; ++j) {
            row += matrix[i][j];
            column += matrix[j][i];
            if (graph != v1::GOSSIP_GRAPH_EXPONENTIAL) CHECK(matrix[i][j] == matrix[j][i]);
          }
          CHECK(row == Approx(1));
          CHECK(column == Approx(1));
          CHECK(matrix[i][i] > 0);
        }
      }
    }
  }
}

TEST_CASE("a ring averages a worker with the ranks beside it") {
  const auto ranks = [](uint32_t rank, uint32_t workers) {
    std::string found;
    for (const Neighbour& other :
         NeighboursOf(With(v1::GOSSIP_GRAPH_RING), kSeed, 5, rank, workers)) {
      found += std::to_string(other.rank) + " ";
      CHECK(other.weight == Approx(workers == 1 ? 1 : workers == 2 ? 0.5 : 1.0 / 3));
    }
    return found;
  };
  CHECK(ranks(0, 1) == "0 ");
  CHECK(ranks(1, 2) == "0 1 ");
  CHECK(ranks(0, 4) == "0 1 3 ");
  CHECK(ranks(2, 4) == "1 2 3 ");
}

TEST_CASE("all members of a group see the same group, and each worker is in one") {
  const v1::Gossip gossip = With(v1::GOSSIP_GRAPH_RANDOM, 4);
  for (uint64_t clock = 0; clock < 100; ++clock) {
    std::vector<size_t> sizes;
    for (uint32_t rank = 0; rank < 10; ++rank) {
      const std::vector<Neighbour> group = NeighboursOf(gossip, kSeed, clock, rank, 10);
      sizes.push_back(group.size());
      for (const Neighbour& other : group) {
        const auto theirs = NeighboursOf(gossip, kSeed, clock, other.rank, 10);
        REQUIRE(theirs.size() == group.size());
        for (size_t i = 0; i < group.size(); ++i) CHECK(theirs[i].rank == group[i].rank);
      }
    }
    // 3 + 3 + 4: as many workers as these are in a group of each size.
    CHECK(std::count(sizes.begin(), sizes.end(), 3) == 6);
    CHECK(std::count(sizes.begin(), sizes.end(), 4) == 4);
  }
  const auto of = [&](uint64_t seed, uint64_t clock) {
    return NeighboursOf(gossip, seed, clock, 0, 1000).at(1).rank;
  };
  CHECK(of(kSeed, 1) == of(kSeed, 1));
  CHECK(of(kSeed, 1) != of(kSeed, 2));
  CHECK(of(kSeed, 1) != of(kSeed + 1, 1));
}

TEST_CASE("an exponential graph of 8 has the exact mean after any 3 clocks") {
  const v1::Gossip gossip = With(v1::GOSSIP_GRAPH_EXPONENTIAL);
  for (uint64_t first = 0; first < 3; ++first) {
    Vector x = {1, 2, 3, 4, 5, 6, 7, 80};
    for (uint64_t clock = first; clock < first + 3; ++clock)
      x = Times(MatrixOf(gossip, clock, 8), x);
    for (const double value : x) CHECK(value == Approx(13.5));
  }
}

TEST_CASE("a fixed graph shrinks the distance as its matrices do") {
  const v1::Gossip ring = With(v1::GOSSIP_GRAPH_RING);
  CHECK(ContractionOf(ring, 4) == Approx(1.0 / 3));
  CHECK(ContractionOf(ring, 8) == Approx(0.8047).epsilon(1e-4));
  for (const uint32_t workers : {1, 2, 3, 4, 5, 8, 16}) {
    CAPTURE(workers);
    CHECK(ContractionOf(ring, workers) == Approx(LargestFactor(ring, 1, workers)).margin(1e-9));
  }
  const v1::Gossip exponential = With(v1::GOSSIP_GRAPH_EXPONENTIAL);
  for (const auto& [workers, period] : {std::pair<uint32_t, uint32_t>{2, 1},
                                        {3, 2},
                                        {4, 2},
                                        {5, 3},
                                        {6, 3},
                                        {7, 3},
                                        {8, 3},
                                        {12, 4}}) {
    CAPTURE(workers);
    CHECK(std::pow(ContractionOf(exponential, workers), period) ==
          Approx(LargestFactor(exponential, period, workers)).margin(1e-9));
  }
}

TEST_CASE("random groups shrink the squared distance by the expected factor") {
  for (const auto& [workers, group, expected] :
       {std::tuple<uint32_t, uint32_t, double>{8, 2, 3.0 / 7},
        {8, 4, 1.0 / 7},
        {5, 2, 2.0 / 4},
        {4, 9, 0}}) {
    CAPTURE(workers, group);
    const v1::Gossip gossip = With(v1::GOSSIP_GRAPH_RANDOM, group);
    RandomStream draws(5, RandomPurpose::kGenerate);
    double sum = 0;
    constexpr int kClocks = 5000;
    for (int clock = 0; clock < kClocks; ++clock) {
      const Vector x = Centred(draws, workers);
      sum += SquareOf(Times(MatrixOf(gossip, clock, workers), x)) / SquareOf(x);
    }
    CHECK(std::pow(ContractionOf(gossip, workers), 2) == Approx(expected).margin(1e-12));
    CHECK(sum / kClocks == Approx(expected).epsilon(0.03).margin(1e-12));
  }
}

TEST_CASE("meetings are with any other worker, equally often") {
  constexpr uint32_t kWorkers = 8;
  for (uint32_t rank = 0; rank < kWorkers; ++rank) {
    std::vector<int> met(kWorkers);
    for (uint64_t clock = 0; clock < 7000; ++clock) {
      ++met[PartnerOf(kSeed, clock, rank, kWorkers, clock % 3)];
    }
    for (uint32_t other = 0; other < kWorkers; ++other) {
      CAPTURE(rank, other);
      CHECK(met[other] == Approx(other == rank ? 0 : 1000).epsilon(0.15));
    }
  }
  CHECK(PartnerOf(kSeed, 3, 0, 2, 0) == 1);
  CHECK(PartnerOf(kSeed, 3, 1, 2, 9) == 0);
  CHECK(PartnerOf(kSeed, 3, 0, 4096, 0) == PartnerOf(kSeed, 3, 0, 4096, 0));
  CHECK(PartnerOf(kSeed, 3, 0, 4096, 0) != PartnerOf(kSeed, 3, 0, 4096, 1));
}

TEST_CASE("meetings shrink the squared distance by the expected factor") {
  constexpr uint32_t kWorkers = 8;
  RandomStream draws(5, RandomPurpose::kGenerate);
  double sum = 0;
  constexpr int kClocks = 20000;
  for (int clock = 0; clock < kClocks; ++clock) {
    Vector x = Centred(draws, kWorkers);
    const double before = SquareOf(x);
    for (uint32_t meeting = 0; meeting < kWorkers; ++meeting) {
      const auto rank = static_cast<uint32_t>(draws.Below(kWorkers));
      double& other = x[PartnerOf(kSeed, clock, rank, kWorkers, meeting)];
      x[rank] = other = (x[rank] + other) / 2;
    }
    sum += SquareOf(x) / before;
  }
  CHECK(sum / kClocks == Approx(std::pow(MeetingContraction(kWorkers), 2)).epsilon(0.03));
  CHECK(MeetingContraction(2) == 0);
}

}  // namespace
}  // namespace leeway::gossip_graph
