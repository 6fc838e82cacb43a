// Contributions with a learning rate of their own: each update uses the contribution's own rate,
// part by part.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/server/shard/shard_rig.h"

namespace leeway::shard_rates {
namespace {

using Catch::Matchers::Contains;
using testing::kBlock;
using testing::Reply;
using testing::SgdOptions;
using testing::World;

using Rates = std::vector<std::pair<uint64_t, double>>;
// In place of a factor.
constexpr double kSkip = -1;

v1::ExchangeHeader With(v1::ExchangeHeader header, const Rates& rates) {
  for (const auto& [end, factor] : rates) {
    v1::RatePart& part = *header.add_rates();
    part.set_end(end);
    part.set_skip(factor == kSkip);
    part.set_factor(factor == kSkip ? 1 : factor);
  }
  return header;
}

void PushPull(World& world, uint32_t rank, uint64_t clock, float value, const Rates& rates,
              Reply& reply, uint64_t examples = 10) {
  world.shard->Contribute(With(world.Header(rank, clock, 0, examples), rates),
                          world.Values(0, value), true, world.now, reply.Done());
}

TEST_CASE("each update has the rate that its contribution says, and no later one") {
  World world(SgdOptions(v1::CONSISTENCY_MODE_SYNC, 1, 0.5));
  world.Initialize(10);
  Reply replies[4];
  PushPull(world, 0, 0, 2, {}, replies[0]);
  CHECK(replies[0].first() == 9);
  PushPull(world, 0, 1, 2, {{kBlock, 0.25}}, replies[1]);
  CHECK(replies[1].first() == 8.75);
  PushPull(world, 0, 2, 2, {{kBlock, 0}}, replies[2]);
  CHECK(replies[2].first() == 8.75);
  PushPull(world, 0, 3, 2, {}, replies[3]);
  CHECK(replies[3].first() == 7.75);
}

TEST_CASE("parts of a block have rates of their own, times the factors that the model has") {
  Shard::Options options = SgdOptions(v1::CONSISTENCY_MODE_SYNC, 1);
  for (const uint64_t end : {8, 100}) {
    v1::TensorSpec& tensor = *options.schema.add_tensors();
    tensor.set_offset(end == 8 ? 0 : 8);
    tensor.add_shape(end - tensor.offset());
    tensor.mutable_factors()->set_learning_rate(end == 8 ? 4 : 1);
  }
  World world(options);
  world.Initialize(0);
  Reply reply;
  PushPull(world, 0, 0, 1, {{4, 0.5}, {20, 3}, {kBlock, 0}}, reply);
  const auto weights = (*reply.result)->values.span();
  for (uint64_t i = 0; i < kBlock; ++i) {
    CAPTURE(i);
    CHECK(weights[i] == (i < 4 ? -2 : i < 8 ? -12 : i < 20 ? -3 : 0));
  }
}

TEST_CASE("outside of sync each contribution has its own rate, times its share of a clock") {
  World world(SgdOptions(v1::CONSISTENCY_MODE_ASYNC, 2));
  world.Initialize(10);
  Reply first, second;
  PushPull(world, 0, 0, 4, {{kBlock, 0.5}}, first);
  CHECK(first.first() == 9);
  PushPull(world, 1, 0, 4, {}, second);
  CHECK(second.first() == 7);
}

TEST_CASE("in sync mode workers with different rates are refused by name, and nothing changes") {
  World world(SgdOptions(v1::CONSISTENCY_MODE_SYNC, 3));
  world.Initialize(10);
  Reply refused[3];
  PushPull(world, 0, 0, 2, {{kBlock, 0.5}}, refused[0]);
  PushPull(world, 1, 0, 2, {{8, 0.5}, {kBlock, 0.5}}, refused[1]);
  PushPull(world, 2, 0, 2, {{8, 0.5}, {kBlock, 0.25}}, refused[2]);
  for (const Reply& each : refused) {
    CHECK(absl::IsInvalidArgument(each.status()));
    CHECK_THAT(std::string(each.status().message()),
               Contains("block 0, clock 0: header.rates: workers 0 and 2") &&
                   Contains("element 8") && Contains("by 0.5 and 0.25") &&
                   Contains("see Schedulers in docs/python.md"));
  }
  Reply replies[3];
  for (uint32_t rank = 0; rank < 3; ++rank) {
    PushPull(world, rank, 0, 2, {{kBlock, 0.5}}, replies[rank]);
  }
  for (const Reply& each : replies) CHECK(each.first() == 9);
}

TEST_CASE("in sync mode no rate is that of another one, and a worker without examples has none") {
  World world(SgdOptions(v1::CONSISTENCY_MODE_SYNC, 2));
  world.Initialize(10);
  Reply refused[2], replies[2];
  PushPull(world, 0, 0, 2, {}, refused[0]);
  PushPull(world, 1, 0, 2, {{kBlock, 0.5}}, refused[1]);
  CHECK(absl::IsInvalidArgument(refused[0].status()));
  PushPull(world, 0, 0, 0, {}, replies[0], 0);
  PushPull(world, 1, 0, 2, {{kBlock, 0.5}}, replies[1]);
  CHECK(replies[0].first() == 9);
}

TEST_CASE("a rate that is none is refused by its field before anything changes") {
  World world(SgdOptions(v1::CONSISTENCY_MODE_SYNC, 1));
  world.Initialize(10);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [rates, text] : std::vector<std::pair<Rates, std::string>>{
           {{{kBlock, -0.5}}, "header.rates[0].factor: is -0.5; it must be"},
           {{{kBlock, nan}}, "header.rates[0].factor: is nan"},
           {{{4, 1}, {kBlock, infinity}}, "header.rates[1].factor: is inf"},
           {{{0, 1}, {kBlock, 1}}, "header.rates[0].end: is 0; it must be above 0"},
           {{{9, 1}, {9, 1}, {kBlock, 1}}, "header.rates[1].end: is 9; it must be above 9"},
           {{{kBlock + 1, 1}}, "header.rates[0].end: is 49; it must be above 0"},
           {{{kBlock - 1, 1}},
            "header.rates[0].end: is 47; the last end must be 48, the number of trained "
            "elements"}}) {
    Reply reply;
    PushPull(world, 0, 0, 2, rates, reply);
    CAPTURE(text);
    CHECK(absl::IsInvalidArgument(reply.status()));
    CHECK_THAT(std::string(reply.status().message()),
               Contains("worker 0, block 0, clock 0: " + text));
  }
  Reply reply;
  PushPull(world, 0, 0, 2, {{kBlock, 1}}, reply);
  CHECK(reply.first() == 8);
}

TEST_CASE("a contribution updates what it does not skip, and a block's momentum stays there") {
  Shard::Options options = SgdOptions(v1::CONSISTENCY_MODE_SYNC, 1);
  options.job.mutable_update()->mutable_sgd()->set_momentum(0.5);
  World world(options);
  world.Initialize(0);
  Reply replies[3];
  PushPull(world, 0, 0, 1, {{8, 1}, {kBlock, kSkip}}, replies[0]);
  PushPull(world, 0, 1, 1, {{8, kSkip}, {kBlock, 0.5}}, replies[1]);
  PushPull(world, 0, 2, 1, {}, replies[2]);
  const auto after = [&](int clock, size_t i) {
    return (*replies[clock].result)->values.span()[i];
  };
  CHECK(after(0, 7) == -1);
  CHECK(after(0, 8) == 0);
  CHECK(after(1, 7) == -1);
  CHECK(after(1, 8) == -0.5);
  CHECK(after(2, 7) == -2.5);
  CHECK(after(2, 8) == -2);
}

TEST_CASE("a block that is skipped whole needs no payload, and part of it does") {
  World world(SgdOptions(v1::CONSISTENCY_MODE_SYNC, 2));
  world.Initialize(10);
  const auto without = [&](uint32_t rank, const Rates& rates, Reply& reply, uint64_t clock = 0,
                           uint64_t examples = 10) {
    world.shard->Contribute(With(world.Header(rank, clock, 0, examples), rates), {}, true,
                            world.now, reply.Done());
  };
  Reply refused[2];
  without(0, {{8, 1}, {kBlock, kSkip}}, refused[0]);
  CHECK_THAT(std::string(refused[0].status().message()), Contains("payload: 0 values"));
  without(0, {}, refused[1]);
  CHECK_THAT(std::string(refused[1].status().message()), Contains("payload: 0 values"));
  Reply replies[2], next[2];
  without(0, {{kBlock, kSkip}}, replies[0]);
  // In parts, and with values that nobody reads.
  PushPull(world, 1, 0, 2, {{8, kSkip}, {kBlock, kSkip}}, replies[1]);
  CHECK(replies[0].first() == 10);
  CHECK(replies[1].first() == 10);
  PushPull(world, 0, 1, 2, {}, next[0]);
  PushPull(world, 1, 1, 2, {}, next[1]);
  CHECK(next[1].first() == 8);
  // Beside one that updates the block it is no part of the sum.
  Reply last[2];
  without(0, {{kBlock, kSkip}}, last[0], 2, 0);
  PushPull(world, 1, 2, 2, {}, last[1]);
  CHECK(last[0].first() == 6);
}

TEST_CASE("in sync mode workers that update different tensors are refused by name") {
  World world(SgdOptions(v1::CONSISTENCY_MODE_SYNC, 2));
  world.Initialize(10);
  Reply refused[2], replies[2];
  PushPull(world, 0, 0, 2, {{8, 1}, {kBlock, kSkip}}, refused[0]);
  PushPull(world, 1, 0, 2, {}, refused[1]);
  for (const Reply& each : refused) {
    CHECK(absl::IsInvalidArgument(each.status()));
    CHECK_THAT(std::string(each.status().message()),
               Contains("workers 0 and 1 update different tensors: worker 1 updates element 8") &&
                   Contains("worker 0 leaves it out") && Contains("see Several optimizers"));
  }
  // One without examples has no say, and one that leaves all out is no part of the mean.
  PushPull(world, 0, 0, 0, {}, replies[0], 0);
  PushPull(world, 1, 0, 2, {{8, 1}, {kBlock, kSkip}}, replies[1]);
  CHECK(replies[0].first() == 8);
  CHECK((*replies[1].result)->values.span()[8] == 10);
}

TEST_CASE("a rule that counts the updates of a block refuses to skip, and by element it does not") {
  Shard::Options options = SgdOptions(v1::CONSISTENCY_MODE_SYNC, 1);
  options.job.mutable_update()->mutable_adam();
  World world(options);
  world.Initialize(10);
  Reply refused;
  PushPull(world, 0, 0, 2, {{8, 1}, {kBlock, kSkip}}, refused);
  CHECK(absl::IsInvalidArgument(refused.status()));
  CHECK_THAT(std::string(refused.status().message()),
             Contains("header.rates[1].skip: the job's rule counts") &&
                 Contains("update.steps_by_element: true"));
  options.job.mutable_update()->set_steps_by_element(true);
  World counting(options);
  counting.Initialize(10);
  Reply reply;
  PushPull(counting, 0, 0, 2, {{8, 1}, {kBlock, kSkip}}, reply);
  REQUIRE(reply.status().ok());
  CHECK((*reply.result)->values.span()[8] == 10);
  CHECK((*reply.result)->values.span()[0] < 10);
}

TEST_CASE("an elastic exchange and a combined contribution have no rates") {
  Shard::Options options = SgdOptions(v1::CONSISTENCY_MODE_SYNC, 2);
  options.job.mutable_workers()->set_per_host(v1::PER_HOST_COMBINE);
  World combining(options);
  combining.Initialize(10);
  v1::ExchangeHeader header = With(combining.Header(1, 0, 0, 0), {{kBlock, 1}});
  header.set_combined(true);
  Reply combined;
  combining.shard->Contribute(header, {}, true, combining.now, combined.Done());
  CHECK_THAT(std::string(combined.status().message()), Contains("header.rates: a combined"));

  options = SgdOptions(v1::CONSISTENCY_MODE_SYNC, 1);
  options.job.mutable_exchange()->mutable_elastic()->set_alpha(0.5);
  World elastic(options);
  elastic.Initialize(10);
  Reply reply;
  PushPull(elastic, 0, 0, 2, {{kBlock, 1}}, reply);
  CHECK_THAT(std::string(reply.status().message()), Contains("header.rates: an elastic exchange"));
}

}  // namespace
}  // namespace leeway::shard_rates
