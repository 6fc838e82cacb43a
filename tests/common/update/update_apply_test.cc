#include <algorithm>
#include <memory>
#include <vector>

#include "common/update/apply.h"
#include "common/update/combine.h"
#include "leeway/v1/job.pb.h"
#include "tests/catch.h"
#include "tests/common/update/contributions.h"
#include "tests/same_bits.h"

namespace leeway::update_apply {
namespace {

using testing::Contributions;
using testing::Draw;
using testing::SameBits;

struct Block {
  std::vector<float> weights, momentum;
  bool operator==(const Block& other) const {
    return SameBits(weights, other.weights) && SameBits(momentum, other.momentum);
  }
};

Block Start(size_t count) { return {Draw(count, 100), Draw(count, 101)}; }

std::unique_ptr<UpdateRule> Momentum() {
  v1::Update update;
  update.mutable_sgd()->set_momentum(0.9);
  return *MakeUpdateRule(update);
}

// Returns the block after one update.
Block Apply(const Contributions& c, const Block& in, size_t trained, bool in_place,
            FarFromReaders far = {}) {
  const auto rule = Momentum();
  Block out = in;
  if (!in_place) {
    out.weights.assign(in.weights.size(), 1e30f);
    out.momentum.assign(in.weights.size(), 1e30f);
  }
  const Block& source = in_place ? out : in;
  const AveragedMove averaged = {in.weights.size(), c.coefficients};
  const float* slot_in = source.momentum.data();
  float* slot_out = out.momentum.data();
  ApplyUpdate({.rule = rule.get(),
               .step = {0.1f, 3},
               .contributions = c.pointers,
               .coefficients = c.coefficients,
               .count = in.weights.size(),
               .trained = trained,
               .averaged = {&averaged, 1},
               .weights_in = source.weights.data(),
               .weights_out = out.weights.data(),
               .slots_in = {&slot_in, 1},
               .slots_out = {&slot_out, 1},
               .far = far});
  return out;
}

TEST_CASE(
    "an update by 1 to 9 contributions is that of a double reference, also across the averaged "
    "part") {
  constexpr size_t kCount = 2600, kTrained = 1500;
  const Block in = Start(kCount);
  for (size_t k = 1; k <= 9; ++k) {
    const Contributions c(k, kCount, false);
    double examples = 0;
    for (uint64_t n : c.examples) examples += static_cast<double>(n);
    const Block out = Apply(c, in, kTrained, false);
    for (size_t i = 0; i < kCount; ++i) {
      CAPTURE(k, i);
      double mean = 0;
      for (size_t j = 0; j < k; ++j) {
        mean += static_cast<double>(c.examples[j]) / examples * c.values[j][i];
      }
      const double velocity = 0.9 * in.momentum[i] + mean;
      const double x = i < kTrained ? in.weights[i] - 0.1 * velocity : mean;
      REQUIRE(out.weights[i] == Approx(x).epsilon(1e-5).margin(1e-6));
      REQUIRE(out.momentum[i] ==
              Approx(i < kTrained ? velocity : in.momentum[i]).epsilon(1e-5).margin(1e-6));
    }
  }
}

TEST_CASE("a contribution that moves averaged values all the way leaves nothing of the old ones") {
  constexpr size_t kCount = 1300;
  Contributions c(1, kCount, true);
  c.coefficients = {1.0f};
  Block in = Start(kCount);
  for (float& x : in.weights) x *= 1e12f;
  for (const bool in_place : {false, true}) {
    const Block out = Apply(c, in, 1000, in_place);
    REQUIRE(std::equal(out.weights.begin() + 1000, out.weights.end(), c.values[0].begin() + 1000));
  }
}

TEST_CASE("the same bits come out in place, past the caches, and from unaligned pieces") {
  // No piece ends at the end of the trained part.
  constexpr size_t kCount = 4001, kTrained = 2900;
  const Block in = Start(kCount);
  for (size_t k = 1; k <= 9; ++k) {
    CAPTURE(k);
    const Contributions whole(k, kCount, false), split(k, kCount, true);
    const Block out = Apply(whole, in, kTrained, false);
    REQUIRE(Apply(whole, in, kTrained, true) == out);
    REQUIRE(Apply(split, in, kTrained, false) == out);
    for (const FarFromReaders far : {FarFromReaders{true, false}, {false, true}, {true, true}}) {
      CAPTURE(far.weights, far.slots);
      REQUIRE(Apply(whole, in, kTrained, false, far) == out);
      REQUIRE(Apply(whole, in, kTrained, true, far) == out);
      REQUIRE(Apply(split, in, kTrained, false, far) == out);
    }
    REQUIRE(Apply(split, in, kTrained, true) == out);
  }
}

TEST_CASE("what a rule works out beforehand changes no bit of its updates") {
  constexpr size_t kCount = 100;
  v1::Update adam, adamw;
  adam.mutable_adam();
  adamw.mutable_adamw();
  for (const v1::Update& update : {adam, adamw}) {
    const auto rule = *MakeUpdateRule(update);
    const std::vector<float> x = Draw(kCount, 1), m = Draw(kCount, 2), g = Draw(kCount, 3);
    const std::vector<float> v(kCount, 0.25f);
    const float* slots_in[] = {m.data(), v.data()};
    std::vector<std::vector<float>> results;
    for (bool prepared : {false, true}) {
      UpdateStep step = {.learning_rate = 0.01f, .number = 7};
      if (prepared) rule->Prepare(step);
      std::vector<float> m_out(kCount), v_out(kCount);
      float* slots_out[] = {m_out.data(), v_out.data()};
      results.emplace_back(kCount);
      rule->Apply(step, {.count = kCount,
                         .weights_in = x.data(),
                         .weights_out = results.back().data(),
                         .gradient = g.data(),
                         .slots_in = slots_in,
                         .slots_out = slots_out});
    }
    REQUIRE(SameBits(results[0], results[1]));
  }
}

TEST_CASE(
    "an elastic update moves the centre by alpha times the sum of differences, in place or not") {
  constexpr size_t kCount = 2100;
  const auto rule = MakeElasticRule(0.3);
  const std::vector<float> centre = Draw(kCount, 100);
  for (size_t k : {1, 2, 3, 5}) {
    const Contributions c(k, kCount, true);
    std::vector<float> apart(kCount), in_place = centre;
    BlockUpdate update = {.rule = rule.get(),
                          .contributions = c.pointers,
                          .count = kCount,
                          .trained = 1000,
                          .elastic = true,
                          .weights_in = centre.data(),
                          .weights_out = apart.data()};
    ApplyUpdate(update);
    update.weights_in = update.weights_out = in_place.data();
    ApplyUpdate(update);
    REQUIRE(SameBits(apart, in_place));
    for (size_t i = 0; i < kCount; ++i) {
      double sum = 0;
      for (size_t j = 0; j < k; ++j) sum += double{c.values[j][i]} - centre[i];
      CAPTURE(k, i);
      REQUIRE(apart[i] == Approx(centre[i] + 0.3 * sum).epsilon(1e-5).margin(1e-5));
    }
  }
}

}  // namespace
}  // namespace leeway::update_apply
