// Workers of one host that combine: in one process, but with real shared memory.
#pragma once

#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "client/calls/host_group.h"
#include "tests/catch.h"

namespace leeway::testing {

inline constexpr uint64_t kTotal = 100;
inline constexpr uint64_t kBlock = 48;  // three blocks, the last of 4 elements

inline BlockLayout Layout() { return *BlockLayout::FromWire(kTotal, 1, kBlock); }

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
  // Publishes all blocks, as an exchange does.
  void Publish(uint64_t clock, float value, uint64_t examples) {
    group->Withdraw();
    Fill(value);
    group->Publish(clock, examples, {0, layout.blocks()});
  }
  // Combines as the leader.
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

inline v1::HostGroup GroupOf(std::initializer_list<const Worker*> workers) {
  v1::HostGroup group;
  for (const Worker* worker : workers) {
    v1::HostGroupMember& member = *group.add_members();
    member.set_rank(worker->rank);
    *member.mutable_contributions() = worker->memory->Offer();
  }
  return group;
}

// Returns the length of a job of this number of steps, in clocks of `steps_per_clock`.
inline v1::JobLength LengthOf(uint64_t steps_per_clock, uint64_t steps) {
  v1::JobLength length;
  length.set_steps_per_clock(steps_per_clock);
  length.set_steps(steps);
  return length;
}

using Outcome = HostGroup::Outcome;

// Ranks 1 and 3 of a host. Rank 1 leads.
struct Two {
  explicit Two(uint64_t generation = 1) { Open(generation); }
  void Open(uint64_t generation) {
    const v1::HostGroup group = GroupOf({&leader, &other});
    leader.Open(group, generation);
    other.Open(group, generation);
  }
  Worker leader{1}, other{3};
};

}  // namespace leeway::testing
