// Counts of what happened in schedules, so that a run can show that it reached its subject.
#pragma once

#include <cstdint>
#include <span>

namespace leeway::sim {

struct Counts {
  uint64_t events = 0, contributions = 0, pushes = 0, duplicates = 0, previous_reads = 0,
           fenced = 0;
  uint64_t waits_refused = 0, waits_reminded = 0, rejected = 0, lives = 0, set_lives = 0, cuts = 0,
           manifests = 0;
  uint64_t stopped = 0, server_kills = 0, coordinator_kills = 0, went_back = 0;
  uint64_t replicated = 0, held_back = 0, streams_broken = 0, placements = 0, take_overs = 0,
           gone = 0;
  uint64_t taken_up = 0, leases_over = 0, without = 0;
  uint64_t extended = 0;
  uint64_t resizes = 0, resized = 0, servers_removed = 0, drained = 0;
  uint64_t sets = 0, smaller_sets = 0, sets_again = 0, late = 0, dropped = 0, rejoined = 0;

  // Each counter, with the name of what it counts.
  struct Each {
    const char* what;
    uint64_t Counts::*count;
  };
  static std::span<const Each> All();
  Counts& operator+=(const Counts& other);
};

}  // namespace leeway::sim
