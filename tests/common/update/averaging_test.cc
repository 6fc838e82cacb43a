// How averaged values follow the batches' own values, on the worker's side and on the servers'.
#include "common/update/averaging.h"

#include <cmath>
#include <limits>
#include <vector>

#include "common/philox.h"
#include "tests/catch.h"

namespace leeway::averaging {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_CASE("a batch moves a running value by the momentum, and no batch not at all") {
  CHECK(MovedShare(0.1, 1) == 0.1);
  CHECK(MovedShare(0.1, 0) == 0);
  CHECK(MovedShare(1, 0) == 0);
  CHECK(MovedShare(1, 7) == 1);
  CHECK(MovedShare(0.1, 20) == Approx(1 - std::pow(0.9, 20)));
  CHECK(MovedShare(1e-9, 3) == Approx(3e-9));
  CHECK(MovedShare(0.1, 1e300) == 1);
  CHECK(JoiningShare(0.1, 0) == 1);
  CHECK(JoiningShare(0.1, kInfinity) == 0.1);
  CHECK(JoiningShare(1, 5) == 1);
}

TEST_CASE(
    "the mean of some batches, moved by their share, is the running value after all of them") {
  for (const double momentum : {1e-6, 0.01, 0.1, 0.5, 0.99, 1.0}) {
    for (const int batches : {1, 2, 3, 20, 500}) {
      RandomStream stream(1, RandomPurpose::kShuffle, {static_cast<uint64_t>(batches)});
      const double start = 10 * stream.Normal();
      double running = start, mean = 7;
      for (int i = 0; i < batches; ++i) {
        const double value = stream.Normal();
        running += momentum * (value - running);
        mean += JoiningShare(momentum, i) * (value - mean);
      }
      CAPTURE(momentum, batches);
      CHECK(start + MovedShare(momentum, batches) * (mean - start) == Approx(running).margin(1e-9));
    }
  }
}

// Layers with averaged tensors of these momenta, two elements each; 0: the schema states no
// momentum.
v1::ModelSchema SchemaOf(const std::vector<double>& momenta) {
  v1::ModelSchema schema;
  schema.set_trained(3);
  v1::TensorSpec* trained = schema.add_tensors();
  trained->add_shape(3);
  uint64_t offset = 3;
  for (const double momentum : momenta) {
    v1::TensorSpec* tensor = schema.add_tensors();
    tensor->add_shape(2);
    tensor->set_offset(offset);
    if (momentum > 0) tensor->set_momentum(momentum);
    offset += 2;
  }
  schema.set_total(offset);
  return schema;
}

TEST_CASE("neighbours that move alike are one range, and every averaged element is in one") {
  CHECK(AveragedElementsOf(SchemaOf({})).empty());
  const auto all = AveragedElementsOf(SchemaOf({0.2, 0.2, 0, 0.1, 0.5}));
  REQUIRE(all.size() == 3);
  CHECK((all[0].range.offset == 3 && all[0].range.end() == 7 && all[0].momentum == 0.2));
  CHECK((all[1].range.offset == 7 && all[1].range.end() == 11 && all[1].momentum == 0.1));
  CHECK((all[2].range.offset == 11 && all[2].range.end() == 13 && all[2].momentum == 0.5));

  const auto part = Within(all, {6, 6});
  REQUIRE(part.size() == 3);
  CHECK((part[0].range.offset == 6 && part[0].range.count == 1));
  CHECK((part[2].range.offset == 11 && part[2].range.count == 1));
  CHECK(Within(all, {0, 3}).empty());

  v1::ModelSchema nameless;
  nameless.set_trained(4);
  nameless.set_total(9);
  const auto whole = AveragedElementsOf(nameless);
  REQUIRE(whole.size() == 1);
  CHECK((whole[0].range.offset == 4 && whole[0].range.count == 5 && whole[0].momentum == 0.1));
}

}  // namespace
}  // namespace leeway::averaging
