// Started block cores for tests, each of block 7.
#pragma once

#include <cstdint>

#include "server/core/block_core.h"
#include "tests/catch.h"

namespace leeway {

inline ConsistencyRules Sync(uint32_t workers) {
  return {Consistency::kSync, 0, workers, false, 0};
}
inline ConsistencyRules Bounded(uint32_t workers, uint64_t s) {
  return {Consistency::kBounded, s, workers, false, 0};
}
inline ConsistencyRules Async(uint32_t workers) {
  return {Consistency::kAsync, 0, workers, false, 0};
}

inline BlockCore Started(const ConsistencyRules& rules) {
  BlockCore core(7, rules);
  core.OnInitialized({});
  return core;
}

inline absl::StatusCode OnlyRefusal(const Decisions& decisions) {
  REQUIRE(decisions.refusals.size() == 1);
  CHECK(decisions.answers.empty());
  CHECK_FALSE(decisions.accepted);
  return decisions.refusals[0].status.code();
}

}  // namespace leeway
