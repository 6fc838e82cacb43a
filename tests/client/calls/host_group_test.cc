// Workers of one host that combine: what is added up, from which lives, and which workers are
// waited for.
#include "client/calls/host_group.h"

#include <limits>

#include "tests/client/host_group_rig.h"

namespace leeway::testing::host_group {
namespace {

TEST_CASE("a worker that is alone on its host hands in for itself") {
  Worker worker(2);
  worker.Open(GroupOf({&worker}));
  CHECK(worker.group == nullptr);
  worker.Open(v1::HostGroup());
  CHECK(worker.group == nullptr);
}

TEST_CASE("a group that a worker is not in, or that is out of order, is refused") {
  Worker one(1), two(2), three(3);
  const auto open = [&](const v1::HostGroup& group) {
    return HostGroup::Open({.rank = 1, .members = group}, one.layout, *one.memory).status();
  };
  CHECK(absl::IsInvalidArgument(open(GroupOf({&two, &three}))));
  CHECK(absl::IsInvalidArgument(open(GroupOf({&two, &one}))));
  CHECK(absl::IsInvalidArgument(open(GroupOf({&one, &one}))));
  CHECK(open(GroupOf({&one, &two})).ok());
}

TEST_CASE("the leader's contribution becomes the mean by examples, block by block") {
  Two two;
  REQUIRE(two.leader.group->leads());
  REQUIRE_FALSE(two.other.group->leads());
  two.leader.Fill(1);
  CHECK(two.leader.Combine(5, 0, 10) == HostGroup::Combined{Outcome::kMissing, 0});
  two.other.Fill(4);
  two.other.group->Publish(5, 20, {1, 2});
  CHECK(two.leader.Combine(5, 0, 10).outcome == Outcome::kMissing);
  CHECK(two.leader.Combine(5, 2, 10) == HostGroup::Combined{Outcome::kCombined, 30});
  CHECK(two.leader.vector.data()[99] == Approx(3));
  CHECK(two.leader.vector.data()[95] == 1);
  CHECK(two.leader.Combine(5, 1, 10).examples == 30);
  two.other.group->Publish(5, 20, {0, 1});
  CHECK(two.leader.Combine(5, 0, 10).examples == 30);
  for (const float value : two.leader.vector.span()) CHECK(value == Approx(3));
}

TEST_CASE("four workers are added up in rank order, whatever came first") {
  Worker workers[] = {Worker(0), Worker(1), Worker(2), Worker(3)};
  const auto group = GroupOf({&workers[0], &workers[1], &workers[2], &workers[3]});
  for (Worker& worker : workers) worker.Open(group);
  const float values[] = {0.1f, 1e7f, -1e7f, 0.7f};
  const uint64_t examples[] = {3, 5, 5, 7};
  float sums[2];
  for (float& sum : sums) {
    workers[0].Fill(values[0]);
    for (const int i : &sum == sums ? std::vector{3, 1, 2} : std::vector{1, 2, 3}) {
      workers[i].Publish(0, values[i], examples[i]);
    }
    CHECK(workers[0].Combine(0, 0, examples[0]).examples == 20);
    sum = workers[0].vector.data()[0];
  }
  CHECK(sums[0] == sums[1]);
  CHECK(sums[0] == Approx((0.3 + 4.9) / 20).margin(0.5));
}

TEST_CASE("averaged elements move as far as by the single contributions") {
  // With 10 examples a batch and 3 steps a clock, 25 examples are 3 batches, 20 are 2, and 5 are 1.
  const uint64_t others = GENERATE(0, 5, 20, 25);
  const uint64_t clock = GENERATE(0, 4);
  Two two;
  const double momentum = 0.2;
  two.leader.averaged = {{{60, 30}, 0.5}, {{90, 10}, momentum}};
  // The last clock has one step. A job that has no steps left has no contributions in the sum.
  two.leader.batches = {10, LengthOf(3, 13)};
  two.Open(1);
  two.leader.Fill(1);
  two.other.Publish(clock, 2, others);
  const auto combined = two.leader.Combine(clock, 1, 25);
  REQUIRE(combined.outcome == Outcome::kCombined);
  REQUIRE(combined.examples == 25 + others);
  two.leader.Combine(clock, 2, 25);
  const double all = 25.0 + static_cast<double>(others);
  const auto share = [&](double m, uint64_t n) {
    return static_cast<double>(n) / all * MovedShare(m, two.leader.batches.Of(n));
  };
  const auto moved = [&](double m) { return share(m, 25) * (1 - 5) + share(m, others) * (2 - 5); };
  const auto made = [&](double m, size_t i) {
    const double k = MovedShare(m, two.leader.batches.OfSum(clock, combined.examples));
    return k * (two.leader.vector.data()[i] - 5);
  };
  CHECK(made(0.5, 60) == Approx(moved(0.5)).epsilon(1e-6));
  CHECK(made(0.5, 89) == Approx(moved(0.5)).epsilon(1e-6));
  CHECK(made(momentum, 90) == Approx(moved(momentum)).epsilon(1e-6));
  CHECK(made(momentum, 99) == Approx(moved(momentum)).epsilon(1e-6));
  // A trained element.
  const double mean = (25 + 2 * static_cast<double>(others)) / all;
  CHECK(two.leader.vector.data()[59] == Approx(mean).epsilon(1e-6));
}

TEST_CASE("contributions of no examples weigh nothing") {
  Two two;
  two.leader.Fill(1);
  two.other.Publish(0, 9, 0);
  CHECK(two.leader.Combine(0, 0, 10) == HostGroup::Combined{Outcome::kCombined, 10});
  CHECK(two.leader.vector.data()[0] == 1);
  CHECK(two.leader.Combine(0, 1, 0) == HostGroup::Combined{Outcome::kCombined, 0});
  CHECK(two.leader.vector.data()[kBlock] == 0);
}

TEST_CASE("a contribution that is not finite is refused, and its worker is named") {
  const auto [value, examples] =
      GENERATE(std::pair(std::numeric_limits<float>::quiet_NaN(), uint64_t{10}),
               std::pair(std::numeric_limits<float>::infinity(), uint64_t{10}),
               // A value without weight also spoils the sum.
               std::pair(std::numeric_limits<float>::quiet_NaN(), uint64_t{0}));
  Two two;
  two.leader.Fill(1);
  two.other.Fill(2);
  two.other.vector.data()[3] = value;
  two.other.group->Publish(0, examples, {0, two.other.layout.blocks()});
  REQUIRE(two.leader.group->Refresh().ok());
  const absl::Status refused =
      two.leader.group->Combine(0, 0, 10, two.leader.vector.span(), two.leader.weights).status();
  CHECK(absl::IsInvalidArgument(refused));
  CHECK_THAT(std::string(refused.message()),
             Catch::Contains("value 3 of the contribution of worker 3 of this host"));
  // The leader's own contribution is unchanged.
  for (const float own : two.leader.vector.span()) CHECK(own == 1);
  // The other block is not affected.
  CHECK(two.leader.Combine(0, 1, 10).outcome == Outcome::kCombined);
}

TEST_CASE("what is withdrawn, of another clock or of another generation is not added") {
  Two two(4);
  two.leader.Fill(1);
  two.other.Publish(6, 3, 10);
  CHECK(two.leader.Combine(7, 0, 10).outcome == Outcome::kMissing);
  // The servers have applied clock 5, because this worker has gone on.
  CHECK(two.leader.Combine(5, 0, 10).outcome == Outcome::kPassed);
  two.other.group->Withdraw();
  CHECK(two.leader.Combine(6, 0, 10).outcome == Outcome::kMissing);
  two.other.Publish(6, 3, 10);
  // The job has gone back: first the other worker has registered again, and then the leader.
  two.other.Open(GroupOf({&two.leader, &two.other}), 5);
  CHECK(two.leader.Combine(6, 0, 10).outcome == Outcome::kMissing);
  two.other.Publish(6, 3, 10);
  CHECK(two.leader.Combine(6, 0, 10).outcome == Outcome::kMissing);
  two.leader.Open(GroupOf({&two.leader, &two.other}), 5);
  two.leader.Fill(1);
  CHECK(two.leader.Combine(6, 0, 10).outcome == Outcome::kCombined);
  CHECK(two.leader.vector.data()[0] == 2);
}

TEST_CASE("a leader that lives anew finds the contributions in place, and adds up the same") {
  Two two;
  two.leader.Fill(1);
  two.other.Publish(2, 4, 30);
  CHECK(two.leader.Combine(2, 0, 10).outcome == Outcome::kCombined);
  const float first = two.leader.vector.data()[0];
  Worker again(1);
  again.Open(GroupOf({&again, &two.other}));
  again.Fill(1);
  CHECK(again.Combine(2, 0, 10) == HostGroup::Combined{Outcome::kCombined, 40});
  CHECK(again.vector.data()[0] == first);
}

TEST_CASE("a worker's new life is read as soon as the coordinator has named it") {
  Two two;
  two.leader.Fill(1);
  Worker again(3);
  const v1::HostGroup group = GroupOf({&two.leader, &again});
  again.Open(group);
  again.Publish(0, 3, 10);
  CHECK(two.leader.Combine(0, 0, 10).outcome == Outcome::kMissing);
  two.leader.group->TakeOffers(group);
  CHECK(two.leader.Combine(0, 0, 10).outcome == Outcome::kCombined);
  CHECK(two.leader.vector.data()[0] == 2);
}

TEST_CASE("what a dead life has published is used until the next one is there") {
  Two two;
  two.leader.Fill(1);
  two.other.Publish(0, 3, 10);
  REQUIRE(two.leader.group->Refresh().ok());
  v1::HostGroup group = GroupOf({&two.leader, &two.other});
  two.other.group.reset();
  two.other.vector = {};
  two.other.memory.reset();
  group.mutable_members(1)->mutable_contributions()->set_nonce(99);
  two.leader.group->TakeOffers(group);
  CHECK(two.leader.Combine(0, 0, 10).outcome == Outcome::kCombined);
}

TEST_CASE("a leader that waits names whom, and gives up after the limit or when it is told to") {
  Worker leader(0), a(2), b(3);
  const auto group = GroupOf({&leader, &a, &b});
  leader.Open(group, 1, 60);
  a.Open(group);
  b.Open(group);
  CHECK(leader.Combine(7, 0, 1).outcome == Outcome::kMissing);
  REQUIRE(leader.group->Pause(7, leader.now).ok());
  CHECK(leader.group->Waiting() == "waiting for workers 2, 3 of this host");
  a.Publish(7, 1, 1);
  CHECK(leader.Combine(7, 0, 1).outcome == Outcome::kMissing);
  CHECK(leader.group->Waiting().empty());
  const Time began = leader.now;
  leader.now += std::chrono::seconds(60);
  const absl::Status late = leader.group->Pause(7, began);
  CHECK(absl::IsDeadlineExceeded(late));
  CHECK(late.message() ==
        "worker 0, clock 7: given up after 60 s (limits.exchange_seconds): waiting for worker 3 of "
        "this host");
  leader.group->Cancel();
  CHECK(absl::IsCancelled(leader.group->Pause(7, leader.now)));
}

}  // namespace
}  // namespace leeway::testing::host_group
