// Workers of one host that combine: in one process, but over real shared memory.
#include "client/host_group.h"

#include <atomic>
#include <cstring>
#include <limits>
#include <thread>

#include "common/shm/shared_layout.h"
#include "tests/catch.h"

namespace leeway {
namespace {

constexpr uint64_t kTotal = 100;
constexpr uint64_t kBlock = 48;  // three blocks, the last of 4 elements

BlockLayout Layout() { return *BlockLayout::FromWire(kTotal, 1, kBlock); }

// One worker: its memory, and its place in the group.
struct Worker {
  explicit Worker(uint32_t rank) : rank(rank), memory(*ContributionMemory::Make(kTotal)) {}

  void Open(const v1::HostGroup& members, uint64_t generation = 1, double seconds = 600) {
    auto opened = HostGroup::Open({.rank = rank,
                                   .generation = generation,
                                   .members = members,
                                   .averaged = averaged,
                                   .batches = batches,
                                   .exchange_seconds = seconds,
                                   .now = [this] { return now; }},
                                  layout, *memory);
    REQUIRE(opened.ok());
    group = *std::move(opened);
    vector = group == nullptr || group->leads() ? FloatBuffer(kTotal) : group->Vector();
  }
  void Fill(float value) {
    for (float& each : vector.span()) each = value;
  }
  // As an exchange would, of all blocks.
  void Publish(uint64_t clock, float value, uint64_t examples) {
    group->Withdraw();
    Fill(value);
    group->Publish(clock, examples, {0, layout.blocks()});
  }
  // The leader's.
  HostGroup::Combined Combine(uint64_t clock, uint32_t block, uint64_t examples) {
    REQUIRE(group->Refresh().ok());
    const auto combined = group->Combine(clock, block, examples, vector.span(), weights);
    REQUIRE(combined.ok());
    return *combined;
  }

  uint32_t rank;
  BlockLayout layout = Layout();
  std::unique_ptr<ContributionMemory> memory;
  std::unique_ptr<HostGroup> group;
  FloatBuffer vector;
  std::vector<float> weights = std::vector<float>(kTotal, 5);
  // The last elements are averaged.
  std::vector<AveragedElements> averaged;
  ClockBatches batches;
  Time now{};
};

v1::HostGroup GroupOf(std::initializer_list<const Worker*> workers) {
  v1::HostGroup group;
  for (const Worker* worker : workers) {
    v1::HostGroupMember& member = *group.add_members();
    member.set_rank(worker->rank);
    *member.mutable_contributions() = worker->memory->Offer();
  }
  return group;
}

using Outcome = HostGroup::Outcome;

// Ranks 1 and 3 of a host, of which 1 leads.
struct Two {
  explicit Two(uint64_t generation = 1) { Open(generation); }
  void Open(uint64_t generation) {
    const v1::HostGroup group = GroupOf({&leader, &other});
    leader.Open(group, generation);
    other.Open(group, generation);
  }
  Worker leader{1}, other{3};
};

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
  // Of 10 examples a batch and 3 steps a clock: 25 examples are 3 batches, 20 are 2, 5 are 1.
  const uint64_t others = GENERATE(0, 5, 20, 25);
  const uint64_t clock = GENERATE(0, 4);
  Two two;
  const double momentum = 0.2;
  two.leader.averaged = {{{60, 30}, 0.5}, {{90, 10}, momentum}};
  // The last clock has one step; a job that has no more of them has none of its contributions.
  two.leader.batches = {10, 3, 13};
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
  // A trained one.
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
               // What weighs nothing spoils the sum, too.
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
  // The leader's own is as it was.
  for (const float own : two.leader.vector.span()) CHECK(own == 1);
  // Another block is not concerned.
  CHECK(two.leader.Combine(0, 1, 10).outcome == Outcome::kCombined);
}

TEST_CASE("what is withdrawn, of another clock or of another generation is not added") {
  Two two(4);
  two.leader.Fill(1);
  two.other.Publish(6, 3, 10);
  CHECK(two.leader.Combine(7, 0, 10).outcome == Outcome::kMissing);
  // The servers have applied clock 5, for this worker has gone on.
  CHECK(two.leader.Combine(5, 0, 10).outcome == Outcome::kPassed);
  two.other.group->Withdraw();
  CHECK(two.leader.Combine(6, 0, 10).outcome == Outcome::kMissing);
  two.other.Publish(6, 3, 10);
  // The job has gone back: the other worker has registered again, and then the leader.
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
        "worker 0, clock 7: waiting for worker 3 of this host, for 60 s (limits.exchange_seconds)");
  leader.group->Cancel();
  CHECK(absl::IsCancelled(leader.group->Pause(7, leader.now)));
}

TEST_CASE("memory that cannot be mapped is an error, once its owner is certainly alive") {
  Two two;
  v1::HostGroup group = GroupOf({&two.leader, &two.other});
  // That of another container: it is there, and not what was offered.
  group.mutable_members(1)->mutable_contributions()->set_nonce(99);
  two.leader.Open(group);
  REQUIRE(two.leader.group->Refresh().ok());
  CHECK(two.leader.group->Combine(0, 0, 1, two.leader.vector.span(), two.leader.weights)->outcome ==
        Outcome::kMissing);
  REQUIRE(two.leader.group->Pause(0, two.leader.now).ok());
  CHECK_THAT(two.leader.group->Waiting(), Catch::Contains("not that which was offered"));
  two.leader.now += std::chrono::seconds(6);
  const absl::Status refused = two.leader.group->Refresh();
  CHECK(absl::IsInvalidArgument(refused));
  CHECK_THAT(
      std::string(refused.message()),
      Catch::StartsWith("worker 1 cannot read the contributions of worker 3 of this host: "));
  CHECK_THAT(std::string(refused.message()), Catch::Contains("workers.per_host: separate"));
}

TEST_CASE("a process that is gone is waited for") {
  Two two;
  v1::HostGroup group = GroupOf({&two.leader, &two.other});
  group.mutable_members(1)->mutable_contributions()->set_pid(~0U);
  two.leader.Open(group);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(two.leader.group->Refresh().ok());
    two.leader.now += std::chrono::seconds(60);
  }
  two.leader.group->TakeOffers(GroupOf({&two.leader, &two.other}));
  two.other.Publish(0, 1, 1);
  CHECK(two.leader.Combine(0, 0, 1).outcome == Outcome::kCombined);
}

// A worker whose memory says what it likes.
struct Liar {
  explicit Liar(uint64_t bytes) : arena(*SharedArena::Create(bytes)) {
    memory = *arena->Allocate(bytes);
    words = reinterpret_cast<std::atomic<uint64_t>*>(memory.get());
  }
  v1::HostGroup GroupWith(const Worker& leader) const {
    v1::HostGroup group = GroupOf({&leader});
    group.add_members()->set_rank(9);
    *group.mutable_members(1)->mutable_contributions() = arena->Offer();
    return group;
  }
  std::shared_ptr<SharedArena> arena;
  std::shared_ptr<std::byte> memory;
  std::atomic<uint64_t>* words;
};

TEST_CASE("a control page may say anything") {
  Liar liar(2 * kSharedPageBytes);
  Worker leader(1);
  leader.Open(liar.GroupWith(leader));
  leader.Fill(1);
  // Generation, beginnings; then the word and the examples of block 0.
  liar.words[0] = 1;
  const auto combine = [&](uint64_t word, uint64_t examples) {
    liar.words[2] = word;
    liar.words[3] = examples;
    REQUIRE(leader.group->Refresh().ok());
    return leader.group->Combine(0, 0, 1, leader.vector.span(), leader.weights);
  };
  CHECK(combine(0, 1)->outcome == Outcome::kMissing);
  CHECK(combine(~uint64_t{0}, 1)->outcome == Outcome::kPassed);
  const auto many = combine(1, ~uint64_t{0});
  CHECK(absl::IsInvalidArgument(many.status()));
  CHECK_THAT(std::string(many.status().message()), Catch::Contains("the memory of worker 9"));
  CHECK(leader.vector.data()[0] == 1);
  // No number at all.
  std::memset(liar.memory.get() + kSharedPageBytes, 0xFF, kSharedPageBytes);
  const auto none = combine(1, 1);
  CHECK(absl::IsInvalidArgument(none.status()));
  CHECK_THAT(std::string(none.status().message()), Catch::Contains("contribution of worker 9"));
  CHECK(leader.vector.data()[0] == 1);
}

TEST_CASE("memory that is too small for the model is refused") {
  Liar liar(kSharedPageBytes);
  Worker leader(1);
  leader.Open(liar.GroupWith(leader));
  REQUIRE(leader.group->Refresh().ok());
  leader.now += std::chrono::seconds(6);
  CHECK(absl::IsInvalidArgument(leader.group->Refresh()));
}

TEST_CASE("a sum of values that change meanwhile is never used") {
  // So long that a sum takes longer than to change the values.
  constexpr uint64_t kMany = 1 << 20;
  Two two;
  for (Worker* worker : {&two.leader, &two.other}) {
    worker->layout = *BlockLayout::FromWire(kMany, 1, kMany);
    worker->memory = *ContributionMemory::Make(kMany);
  }
  two.Open(1);
  two.leader.vector = FloatBuffer(kMany);
  std::atomic<bool> ends{false};
  std::atomic<size_t> combined{0};
  std::thread writer([&] {
    for (uint64_t i = 1; !ends; ++i) {
      two.other.group->Withdraw();
      two.other.Fill(static_cast<float>(i));
      two.other.group->Publish(0, 1, {0, 1});
      // Every other time the values stay until they are added up, or else change in the middle of
      // it.
      for (const size_t before = combined; i % 2 == 0 && !ends && combined == before;) {
        std::this_thread::yield();
      }
      // As if it had registered again.
      if (i % 3 == 0) two.other.memory->Begin(two.other.layout, 1).IgnoreError();
    }
  });
  size_t mixed = 0;
  const std::vector<float> weights(kMany);
  while (combined < 100) {
    REQUIRE(two.leader.group->Refresh().ok());
    const auto result = two.leader.group->Combine(0, 0, 1, two.leader.vector.span(), weights);
    if (result->outcome != Outcome::kCombined) continue;
    const float first = two.leader.vector.data()[0];
    for (const float value : two.leader.vector.span()) mixed += value != first;
    two.leader.Fill(0);
    ++combined;
  }
  ends = true;
  writer.join();
  CHECK(mixed == 0);
}

TEST_CASE("memory for contributions keeps its place, and starts afresh") {
  const auto memory = *ContributionMemory::Make(kTotal);
  const BlockLayout layout = Layout();
  REQUIRE(memory->Begin(layout, 3).ok());
  FloatBuffer vector = memory->Vector();
  CHECK(vector.size() == kTotal);
  CHECK(reinterpret_cast<uintptr_t>(vector.data()) % kSharedPageBytes == 0);
  vector.data()[0] = 1;
  memory->Publish(0, 1, {0, 3});
  const auto view = ContributionView::Map(memory->Offer(), layout);
  REQUIRE(view.ok());
  const auto found = view->Look(3, 0, 0);
  CHECK(found.state == ContributionView::State::kHere);
  CHECK(view->Stands(found, 0, 0));
  REQUIRE(memory->Begin(layout, 3).ok());
  memory->Publish(0, 1, {0, 3});
  // The same words, but of another beginning.
  CHECK_FALSE(view->Stands(found, 0, 0));
  CHECK(memory->Vector().data() == vector.data());
  CHECK(vector.data()[0] == 0);
  const auto other = *BlockLayout::FromWire(kTotal + 1, 1, kBlock);
  CHECK(absl::IsInvalidArgument(memory->Begin(other, 3)));
}

}  // namespace
}  // namespace leeway
