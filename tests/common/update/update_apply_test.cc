#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/philox.h"
#include "common/update/apply.h"
#include "common/update/combine.h"
#include "leeway/v1/job.pb.h"
#include "tests/catch.h"

namespace leeway::update_apply {
namespace {

std::vector<float> Draw(size_t count, uint64_t key) {
  RandomStream stream(11, RandomPurpose::kInitialize, {key});
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(stream.Normal());
  return values;
}

// k contributions of `count` floats, each whole or in pieces, as the network might leave it.
struct Contributions {
  Contributions(size_t k, size_t count, bool split) {
    for (size_t i = 0; i < k; ++i) {
      values.push_back(Draw(count, i + 1));
      payloads.push_back(split ? Split(values.back(), i) : FloatPayload::Of(values.back()));
      examples.push_back(10 + 7 * i);
    }
    for (const FloatPayload& payload : payloads) pointers.push_back(&payload);
    coefficients = MeanCoefficients(examples);
  }

  // The pieces are apart from each other, with bytes of NaN between them.
  static FloatPayload Split(const std::vector<float>& values, size_t seed) {
    constexpr size_t kGap = 9;
    const size_t bytes = values.size() * sizeof(float), longest = 1000 + 513 * seed;
    const size_t gaps = (bytes / longest + 2) * kGap;
    auto memory = std::make_shared<std::vector<uint8_t>>(bytes + gaps, 0xff);
    const auto* from = reinterpret_cast<const uint8_t*>(values.data());
    uint8_t* to = memory->data() + 1 + seed % 3;
    FloatPayload::PieceList pieces;
    for (size_t begin = 0; begin < bytes;) {
      const size_t size = std::min(bytes - begin, longest);
      std::copy_n(from + begin, size, to);
      pieces.push_back(FloatPayload::Piece(to, size));
      begin += size;
      to += size + kGap;
    }
    return FloatPayload(memory, std::move(pieces));
  }

  std::vector<std::vector<float>> values;
  std::vector<FloatPayload> payloads;
  std::vector<const FloatPayload*> pointers;
  std::vector<uint64_t> examples;
  std::vector<float> coefficients;
};

struct Block {
  std::vector<float> weights, momentum;
  bool operator==(const Block& other) const {
    return SameBits(weights, other.weights) && SameBits(momentum, other.momentum);
  }
  static bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
  }
};

Block Start(size_t count) { return {Draw(count, 100), Draw(count, 101)}; }

std::unique_ptr<UpdateRule> Momentum() {
  v1::Update update;
  update.mutable_sgd()->set_momentum(0.9);
  return *MakeUpdateRule(update);
}

// Returns the block after one update by elements [begin, end) of the contributions.
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

TEST_CASE("coefficients are the shares of the examples, and zeros where there are none") {
  const std::vector<uint64_t> examples = {1, 0, 3};
  REQUIRE(MeanCoefficients(examples) == std::vector<float>{0.25f, 0, 0.75f});
  REQUIRE(MeanCoefficients(std::vector<uint64_t>{0, 0}) == std::vector<float>{0, 0});
  REQUIRE(MeanCoefficients(std::vector<uint64_t>{5}) == std::vector<float>{1});
  REQUIRE(MeanCoefficients(std::vector<uint64_t>{0, 1}) == std::vector<float>{0, 1});
  const uint64_t most = ~uint64_t{0};
  REQUIRE(MeanCoefficients(std::vector<uint64_t>{most, most}) == std::vector<float>{0.5f, 0.5f});
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

std::unique_ptr<UpdateRule> Decaying(const std::string& name) {
  v1::Update update;
  if (name == "sgd") {
    update.mutable_sgd()->set_momentum(0.9);
    update.mutable_sgd()->set_weight_decay(0.1);
  } else if (name == "adamw") {
    update.mutable_adamw()->set_weight_decay(0.1);
  } else {
    update.mutable_lion()->set_weight_decay(0.1);
  }
  return *MakeUpdateRule(update);
}

// A block with all slots of a rule. `count` elements from `offset` on are updated.
struct Stretch {
  std::vector<float> weights;
  std::vector<std::vector<float>> slots;

  // Into other memory, which holds garbage; and back.
  void UpdateElsewhere(const UpdateRule& rule, const Contributions& c, const UpdateStep& step,
                       std::span<const UpdatePart> parts, FarFromReaders far) {
    Stretch next = *this;
    next.weights.assign(weights.size(), 777.0f);
    for (std::vector<float>& slot : next.slots) slot.assign(weights.size(), -777.0f);
    Update(rule, c, 0, weights.size(), step, parts, far, &next);
    *this = next;
  }
  void Update(const UpdateRule& rule, const Contributions& c, size_t offset, size_t count,
              const UpdateStep& step, std::span<const UpdatePart> parts, FarFromReaders far = {},
              Stretch* into = nullptr) {
    Stretch& to = into == nullptr ? *this : *into;
    std::vector<FloatPayload> payloads;
    for (const std::vector<float>& values : c.values) {
      payloads.push_back(FloatPayload::Of({values.data() + offset, count}));
    }
    std::vector<const FloatPayload*> pointers;
    for (const FloatPayload& payload : payloads) pointers.push_back(&payload);
    std::vector<const float*> in;
    std::vector<float*> out;
    for (size_t slot = 0; slot < slots.size(); ++slot) {
      in.push_back(slots[slot].data() + offset);
      out.push_back(to.slots[slot].data() + offset);
    }
    REQUIRE(ApplyUpdate({.rule = &rule,
                         .step = step,
                         .contributions = pointers,
                         .coefficients = c.coefficients,
                         .count = count,
                         .trained = count,
                         .parts = parts,
                         .weights_in = weights.data() + offset,
                         .weights_out = to.weights.data() + offset,
                         .slots_in = in,
                         .slots_out = out,
                         .far = far}));
  }
  bool operator==(const Stretch& other) const = default;
};

TEST_CASE("parts of a block are updated as blocks of their own, each by its step") {
  constexpr size_t kCount = 2600;
  const std::vector<UpdatePart> parts = {{.end = 1, .rate = 0.5, .decay = 0},
                                         {.end = 900},
                                         {.end = 901, .rate = 0},
                                         {.end = 1500, .rate = 3, .decay = 0.5},
                                         {.end = kCount, .decay = 0}};
  for (const char* name : {"sgd", "adamw", "lion"}) {
    const auto rule = Decaying(name);
    const size_t slots = rule->slots().size();
    const Stretch start = {Draw(kCount, 100), std::vector(slots, std::vector<float>(kCount, 0.5f))};
    const UpdateStep step = {.learning_rate = 0.1f, .number = 3};
    for (size_t k : {1, 2, 5, 9}) {
      const Contributions c(k, kCount, false);
      Stretch apart = start;
      size_t begin = 0;
      for (const UpdatePart& part : parts) {
        apart.Update(*rule, c, begin, part.end - begin, step.In(part), {});
        begin = part.end;
      }
      for (const FarFromReaders far : {FarFromReaders{}, {true, false}, {true, true}}) {
        CAPTURE(name, k, far.weights, far.slots);
        Stretch together = start, alike = start;
        together.Update(*rule, c, 0, kCount, step, parts, far);
        CHECK(together == apart);
        alike.Update(*rule, c, 0, kCount, step, {}, far);
        CHECK_FALSE(alike == apart);
      }
    }
  }
}

TEST_CASE("a part that is skipped keeps its bits, and does not change those of the others") {
  constexpr size_t kCount = 2600;
  const std::vector<UpdatePart> parts = {{.end = 1},
                                         {.end = 900, .skip = true},
                                         {.end = 1500, .rate = 3},
                                         {.end = kCount, .skip = true}};
  for (const char* name : {"sgd", "adamw", "lion"}) {
    const auto rule = Decaying(name);
    const size_t slots = rule->slots().size();
    const Stretch start = {Draw(kCount, 100), std::vector(slots, std::vector<float>(kCount, 0.5f))};
    const UpdateStep step = {.learning_rate = 0.1f, .number = 3};
    for (size_t k : {1, 2, 5}) {
      Contributions c(k, kCount, false);
      Stretch expected = start;
      expected.Update(*rule, c, 0, 1, step, {});
      expected.Update(*rule, c, 900, 600, step.In(parts[2]), {});
      // What is there in the skipped parts of a contribution counts for nothing.
      for (auto& values : c.values) values[5] = values[2000] = NAN;
      for (const FarFromReaders far : {FarFromReaders{}, {true, false}, {true, true}}) {
        CAPTURE(name, k, far.weights, far.slots);
        Stretch skipped = start;
        skipped.Update(*rule, c, 0, kCount, step, parts, far);
        CHECK(skipped == expected);
        Stretch elsewhere = start;
        elsewhere.UpdateElsewhere(*rule, c, step, parts, far);
        CHECK(elsewhere == expected);
      }
    }
  }
}

// The servers' rule of a job, and with steps by element.
std::unique_ptr<UpdateRule> Counting(const char* name, bool average) {
  v1::TrainingJob job;
  v1::Update& update = *job.mutable_update();
  if (name == std::string_view("adam")) update.mutable_adam()->set_weight_decay(0.1);
  if (name == std::string_view("adamw")) update.mutable_adamw()->set_weight_decay(0.1);
  if (name == std::string_view("sgd")) update.mutable_sgd()->set_momentum(0.9);
  if (average) update.mutable_average()->set_decay(0.9);
  update.set_steps_by_element(true);
  return *MakeServerRule(job);
}

TEST_CASE("steps counted by element are those of a block that had no others, wherever it is cut") {
  constexpr size_t kCount = 700;
  for (const char* name : {"adam", "adamw", "sgd"}) {
    for (const bool average : {false, true}) {
      const auto rule = Counting(name, average);
      const bool counts = average || name != std::string_view("sgd");
      CHECK(rule->steps_slot().has_value() == counts);
      CHECK_FALSE(rule->uses_number());
      const Stretch start = {Draw(kCount, 100),
                             std::vector(rule->slots().size(), std::vector<float>(kCount, 0.0f))};
      Stretch together = start, apart = start, cut = start;
      std::vector<uint64_t> number(3, 0);
      const size_t ends[] = {300, 301, kCount};
      for (uint64_t round = 1; round < 40; ++round) {
        CAPTURE(name, average, round);
        const Contributions c(2, kCount, false);
        std::vector<UpdatePart> parts;
        size_t begin = 0;
        for (size_t i = 0; i < 3; ++i) {
          const bool skip = round % (i + 2) == 0;
          parts.push_back({.end = ends[i], .skip = skip});
          const UpdateStep own = {.learning_rate = 0.1f, .number = number[i] + 1};
          if (!skip) apart.Update(*rule, c, begin, ends[i] - begin, own, {});
          number[i] += skip ? 0 : 1;
          begin = ends[i];
        }
        const UpdateStep step = {.learning_rate = 0.1f, .number = round};
        // As one part, elements differ in their number.
        const bool whole = round % 2 > 0 && round % 3 > 0 && round % 4 > 0;
        if (whole) parts.assign({{.end = kCount}});
        together.Update(*rule, c, 0, kCount, step, parts);
        if (whole) parts.assign(3, {});
        const std::vector<UpdatePart> first = {{.end = 300, .skip = parts[0].skip},
                                               {.end = 301, .skip = parts[1].skip},
                                               {.end = 450, .skip = parts[2].skip}};
        cut.Update(*rule, c, 0, 450, step, first);
        const std::vector<UpdatePart> rest = {{.end = kCount - 450, .skip = parts[2].skip}};
        cut.Update(*rule, c, 450, kCount - 450, step, rest);
        REQUIRE(together == apart);
        REQUIRE(together == cut);
      }
      if (counts) CHECK(together.slots.back()[0] == static_cast<float>(number[0]));
    }
  }
}

TEST_CASE("steps counted by element give the bits of the usual rule where nothing is skipped") {
  constexpr size_t kCount = 1100;
  v1::Update update;
  update.mutable_adamw()->set_weight_decay(0.1);
  const auto usual = *MakeUpdateRule(update);
  const auto counting = Counting("adamw", false);
  Stretch one = {Draw(kCount, 100), std::vector(2, std::vector<float>(kCount, 0.0f))};
  Stretch other = {one.weights, std::vector(3, std::vector<float>(kCount, 0.0f))};
  for (uint64_t number = 1; number < 20; ++number) {
    const Contributions c(3, kCount, false);
    one.Update(*usual, c, 0, kCount, {.learning_rate = 0.1f, .number = number}, {});
    // Whatever the block's number is.
    other.Update(*counting, c, 0, kCount, {.learning_rate = 0.1f, .number = 77}, {});
    CHECK(one.weights == other.weights);
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

TEST_CASE("the combined sum does not depend on where tiles are cut") {
  constexpr size_t kCount = 3000;
  for (size_t k = 1; k <= 9; ++k) {
    const Contributions c(k, kCount, k % 2 == 0);
    const std::vector<float> centre = Draw(kCount, 77);
    for (const std::string kind : {"sum", "elastic", "averaged"}) {
      std::vector<std::vector<float>> results;
      for (size_t tile : {1u, 7u, 64u, 1000u, 1024u}) {
        Combiner combiner = kind == "sum" ? Combiner(c.pointers, c.coefficients)
                            : kind == "elastic"
                                ? Combiner::Differences(c.pointers, centre.data())
                                : Combiner::Differences(c.pointers, c.coefficients, centre.data());
        std::vector<float>& sum = results.emplace_back();
        for (size_t offset = 0; offset < kCount; offset += tile) {
          const size_t count = std::min<size_t>(tile, kCount - offset);
          const float* values = combiner.Tile(offset, count);
          sum.insert(sum.end(), values, values + count);
        }
        CAPTURE(k, kind, tile);
        REQUIRE(Block::SameBits(sum, results.front()));
      }
    }
  }
}

TEST_CASE("the tree is ((0 1) (2 3)) 4 for five contributions, whatever their values") {
  // Sums that show the order of additions: 1 is lost next to 1e8.
  const float values[] = {1e8f, 1, -1e8f, 1, 1};
  std::vector<FloatPayload> payloads;
  for (const float& value : values) payloads.push_back(FloatPayload::Of({&value, 1}));
  std::vector<const FloatPayload*> pointers;
  for (const FloatPayload& payload : payloads) pointers.push_back(&payload);
  const std::vector<float> ones(5, 1.0f);
  Combiner combiner(pointers, ones);
  REQUIRE(combiner.Tile(0, 1)[0] == ((1e8f + 1) + (-1e8f + 1)) + 1);
}

// Returns the sum of contributions [first, first + k) at element j, by the tree's definition.
float TreeSum(const Contributions& c, size_t first, size_t k, size_t j) {
  if (k == 1) return c.coefficients[first] * c.values[first][j];
  const size_t left = std::bit_floor(k - 1);
  return TreeSum(c, first, left, j) + TreeSum(c, first + left, k - left, j);
}

TEST_CASE("any number of contributions, however split, is summed by the tree of the definition") {
  constexpr size_t kCount = 1700;
  for (size_t k : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15, 16, 17, 23, 31, 33}) {
    const Contributions c(k, kCount, k % 2 == 1);
    Combiner combiner(c.pointers, c.coefficients);
    for (size_t offset = 0, count; offset < kCount; offset += count) {
      count = combiner.Run(offset, std::min<size_t>(300, kCount - offset));
      CAPTURE(k, offset, count);
      REQUIRE(count >= 1);
      const float* sum = combiner.Tile(offset, count);
      size_t wrong = 0;
      for (size_t j = 0; j < count; ++j) wrong += sum[j] != TreeSum(c, 0, k, offset + j);
      REQUIRE(wrong == 0);
    }
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
    REQUIRE(Block::SameBits(results[0], results[1]));
  }
}

TEST_CASE("a lone contribution is used where it lies") {
  const Contributions c(1, 2048, false);
  Combiner combiner(c.pointers, c.coefficients);
  REQUIRE(combiner.Tile(1024, 1000) == c.values[0].data() + 1024);
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
    REQUIRE(Block::SameBits(apart, in_place));
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
