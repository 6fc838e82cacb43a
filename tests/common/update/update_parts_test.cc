// Updates of a block in parts: factors, parts that are skipped, and steps counted by element.
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/update/apply.h"
#include "leeway/v1/job.pb.h"
#include "tests/catch.h"
#include "tests/common/update/contributions.h"

namespace leeway::update_parts {
namespace {

using testing::Contributions;
using testing::Draw;

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

}  // namespace
}  // namespace leeway::update_parts
