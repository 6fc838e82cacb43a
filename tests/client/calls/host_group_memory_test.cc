// What the shared memory of a host's other workers may contain, or what may prevent reading it.
#include <atomic>
#include <cstring>
#include <thread>

#include "client/calls/contribution_memory.h"
#include "common/shm/shared_layout.h"
#include "tests/client/host_group_rig.h"

namespace leeway::testing::host_group_memory {
namespace {

TEST_CASE("memory that cannot be mapped is an error, once its owner is certainly alive") {
  Two two;
  v1::HostGroup group = GroupOf({&two.leader, &two.other});
  // The memory of another container: it exists, but it is not the one that was offered.
  group.mutable_members(1)->mutable_contributions()->set_nonce(99);
  two.leader.Open(group);
  REQUIRE(two.leader.group->Refresh().ok());
  CHECK(two.leader.group->Combine(0, 0, 1, two.leader.vector.span(), two.leader.weights)->outcome ==
        Outcome::kMissing);
  REQUIRE(two.leader.group->Pause(0, two.leader.now).ok());
  CHECK_THAT(two.leader.group->Waiting(), Catch::Contains("not the offered one"));
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

// A worker whose shared memory has arbitrary contents.
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
  // The generation and the beginnings, and then the word and the examples of block 0.
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
  // A value that is not a number.
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
  // So long that a sum takes longer than changing the values.
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
      // The same clock again, which only a worker that has registered again computes.
      two.other.group->Withdraw();
      two.other.memory->Begin(two.other.layout, 1).IgnoreError();
      two.other.Fill(static_cast<float>(i));
      two.other.group->Publish(0, 1, {0, 1});
      // Every other time the values stay until they are added up; otherwise they change in the
      // middle of the sum.
      for (const size_t before = combined; i % 2 == 0 && !ends && combined == before;) {
        std::this_thread::yield();
      }
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
  // The same words, but with another beginning.
  CHECK_FALSE(view->Stands(found, 0, 0));
  CHECK(memory->Vector().data() == vector.data());
  CHECK(vector.data()[0] == 0);
  const auto other = *BlockLayout::FromWire(kTotal + 1, 1, kBlock);
  CHECK(absl::IsInvalidArgument(memory->Begin(other, 3)));
}

}  // namespace
}  // namespace leeway::testing::host_group_memory
