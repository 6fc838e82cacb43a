// Values that are not finite: the update itself finds them, their senders are told, and the block
// keeps no trace.
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/shard/shard.h"
#include "tests/catch.h"
#include "tests/server/shard/no_cuts.h"

namespace leeway::shard_finite {
namespace {

using testing::NoCuts;

// Two blocks; a block has several tiles and a remainder.
constexpr uint64_t kBlock = 2571;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Shard::Options Options(v1::ConsistencyMode mode, uint32_t workers) {
  Shard::Options options;
  options.job.mutable_exchange()->mutable_gradient();
  options.job.mutable_consistency()->set_mode(mode);
  options.job.mutable_consistency()->set_staleness(4);
  options.job.mutable_update()->mutable_adam()->set_beta1(0.9);
  options.job.mutable_update()->mutable_adam()->set_beta2(0.999);
  options.job.mutable_update()->mutable_adam()->set_epsilon(1e-8);
  options.job.mutable_update()->set_learning_rate(0.01);
  options.job.mutable_data()->set_batch_size(10);
  options.job.mutable_workers()->set_count(workers);
  options.job.mutable_servers()->set_count(1);
  options.schema.set_total(2 * kBlock);
  options.schema.set_trained(2 * kBlock);
  options.length.set_steps_per_clock(1);
  options.length.set_clocks(10);
  options.length.set_steps_per_epoch(10);
  options.block_elements = kBlock;
  return options;
}

void UseMomentum(Shard::Options& options) {
  options.job.mutable_update()->mutable_sgd()->set_momentum(0.9);
}
void UseElastic(Shard::Options& options) {
  options.job.clear_update();
  options.job.mutable_exchange()->mutable_elastic()->set_alpha(0.5);
}

using Values = std::shared_ptr<std::vector<float>>;

Values Gradient(float value) { return std::make_shared<std::vector<float>>(kBlock, value); }
Values With(size_t index, float value) {
  Values values = Gradient(0.5f);
  (*values)[index] = value;
  return values;
}

// Block 1 of a shard whose weights are 1, and the contributions of workers to it.
class World {
 public:
  explicit World(const Shard::Options& options) : shard(*Shard::Make(options, &cuts_)) {
    shard->Initialize(Header(0, 0), FloatPayload::Of(*Gradient(1)),
                      [](auto reading) { REQUIRE(reading.ok()); });
  }

  v1::ExchangeHeader Header(uint32_t rank, uint64_t clock, uint64_t examples = 10) {
    v1::ExchangeHeader header;
    header.set_rank(rank);
    header.set_incarnation(1);
    header.set_clock(clock);
    header.set_block(1);
    header.set_examples(examples);
    return header;
  }
  void HandIn(uint32_t rank, uint64_t clock, const Values& values, bool wants_reply = true,
              uint64_t examples = 10) {
    answers.erase(rank);
    shard->Contribute(Header(rank, clock, examples), FloatPayload::Of(*values, values), wants_reply,
                      Time{}, [this, rank](absl::StatusOr<BlockReading> reading) {
                        REQUIRE_FALSE(answers.contains(rank));
                        answers[rank] = reading.status();
                      });
  }
  bool Applied(uint32_t rank) const { return answers.contains(rank) && answers.at(rank).ok(); }
  std::string Text(uint32_t rank) const {
    return answers.contains(rank) ? std::string(answers.at(rank).message()) : "no answer";
  }
  // Returns weights and slots, bit for bit.
  std::string Bits() const {
    const BlockValues values = shard->store().Current(1);
    std::string bits;
    const auto append = [&](const SharedFloats& floats) {
      bits.append(reinterpret_cast<const char*>(floats.span().data()), floats.span().size_bytes());
    };
    append(values.weights);
    for (const SharedFloats& slot : values.slots) append(slot);
    return bits;
  }

  std::map<uint32_t, absl::Status> answers;

 private:
  NoCuts cuts_;

 public:
  std::unique_ptr<Shard> shard;
};

std::string NotFinite(uint32_t rank, uint64_t clock, size_t index) {
  return "worker " + std::to_string(rank) + ", block 1, clock " + std::to_string(clock) +
         ": payload: value " + std::to_string(index) + " (element " +
         std::to_string(kBlock + index) +
         " of the model) is not finite; has the training diverged?";
}

TEST_CASE(
    "sync: of three contributions the bad one is refused by name, nothing changes, and a good one "
    "in "
    "its place completes the set") {
  for (const auto& change : {+[](Shard::Options&) {}, &UseMomentum, &UseElastic}) {
    Shard::Options options = Options(v1::CONSISTENCY_MODE_SYNC, 3);
    change(options);
    World world(options), undisturbed(options);
    for (uint32_t rank : {0, 1, 2}) {
      world.HandIn(rank, 0, Gradient(0.5f));
      undisturbed.HandIn(rank, 0, Gradient(0.5f));
    }
    const std::string before = world.Bits();
    world.HandIn(2, 1, Gradient(0.25f));
    world.HandIn(1, 1, With(kBlock - 1, NAN));
    CHECK(world.Text(1) == "no answer");
    world.HandIn(0, 1, Gradient(0.125f));
    CHECK(world.Text(1) == NotFinite(1, 1, kBlock - 1));
    CHECK(world.Text(0) == "no answer");
    CHECK(world.Text(2) == "no answer");
    CHECK(world.Bits() == before);
    world.HandIn(1, 1, Gradient(0.75f));
    for (uint32_t rank : {0, 1, 2}) CHECK(world.Applied(rank));
    undisturbed.HandIn(0, 1, Gradient(0.125f));
    undisturbed.HandIn(1, 1, Gradient(0.75f));
    undisturbed.HandIn(2, 1, Gradient(0.25f));
    CHECK(world.Bits() == undisturbed.Bits());
    CHECK(world.Bits() != before);
  }
}

TEST_CASE("async and bounded: wherever and however a value is not finite, the block is as before") {
  for (auto mode : {v1::CONSISTENCY_MODE_ASYNC, v1::CONSISTENCY_MODE_BOUNDED}) {
    for (const auto& change : {+[](Shard::Options&) {}, &UseMomentum, &UseElastic}) {
      Shard::Options options = Options(mode, 2);
      change(options);
      World world(options);
      world.HandIn(0, 0, Gradient(0.5f));
      REQUIRE(world.Applied(0));
      const std::string before = world.Bits();
      for (float bad : {NAN, kInfinity, -kInfinity}) {
        for (size_t index : {size_t{0}, size_t{1023}, size_t{1024}, size_t{kBlock - 1}}) {
          for (bool wants_reply : {true, false}) {
            world.HandIn(0, 1, With(index, bad), wants_reply);
            CHECK(world.Text(0) == NotFinite(0, 1, index));
            CHECK(world.Bits() == before);
          }
        }
      }
      CHECK(world.shard->updates_applied() == 1);
      world.HandIn(0, 1, Gradient(0.5f));
      CHECK(world.Applied(0));
      CHECK(world.Bits() != before);
    }
  }
}

TEST_CASE("sync: a push is acknowledged when it is applied, or refused for its values then") {
  World world(Options(v1::CONSISTENCY_MODE_SYNC, 2));
  world.HandIn(0, 0, With(7, NAN), false);
  CHECK(world.Text(0) == "no answer");
  world.HandIn(1, 0, Gradient(1), false);
  CHECK(world.Text(0) == NotFinite(0, 0, 7));
  CHECK(world.Text(1) == "no answer");
  world.HandIn(0, 0, Gradient(1), false);
  CHECK(world.Applied(0));
  CHECK(world.Applied(1));
}

TEST_CASE("the averaged values are looked at, too, and contributions without examples") {
  Shard::Options options = Options(v1::CONSISTENCY_MODE_SYNC, 1);
  options.schema.set_trained(kBlock + 100);
  World world(options);
  world.HandIn(0, 0, With(100, kInfinity));
  CHECK(world.Text(0) == NotFinite(0, 0, 100));
  world.HandIn(0, 0, With(3, NAN), true, 0);
  CHECK(world.Text(0) == NotFinite(0, 0, 3));
}

TEST_CASE("where finite contributions make a value that is not, all of them are refused") {
  for (auto mode : {v1::CONSISTENCY_MODE_SYNC, v1::CONSISTENCY_MODE_ASYNC}) {
    const uint32_t workers = mode == v1::CONSISTENCY_MODE_SYNC ? 2 : 1;
    Shard::Options options = Options(mode, workers);
    options.job.mutable_update()->mutable_sgd();
    options.job.mutable_update()->set_learning_rate(1e3);
    World world(options);
    const std::string before = world.Bits();
    for (uint32_t rank = 0; rank < workers; ++rank) world.HandIn(rank, 0, With(2000, 1e38f));
    for (uint32_t rank = 0; rank < workers; ++rank) {
      CHECK(world.Text(rank) == "worker " + std::to_string(rank) +
                                    ", block 1, clock 0: payload: value 2000 (element 4571 of the "
                                    "model) is finite in every contribution, but would not be in "
                                    "the block after the update; has the training diverged?");
    }
    CHECK(world.Bits() == before);
    for (uint32_t rank = 0; rank < workers; ++rank) world.HandIn(rank, 0, Gradient(1));
    for (uint32_t rank = 0; rank < workers; ++rank) CHECK(world.Applied(rank));
  }
}

TEST_CASE("an optimizer state that would overflow is refused although the weights would not") {
  World world(Options(v1::CONSISTENCY_MODE_ASYNC, 1));  // Adam: the square of 1e25
  const std::string before = world.Bits();
  world.HandIn(0, 0, With(0, 1e25f));
  CHECK_THAT(world.Text(0), Catch::Contains("value 0 (element 2571 of the model) is finite in"));
  CHECK(world.Bits() == before);
}

}  // namespace
}  // namespace leeway::shard_finite
