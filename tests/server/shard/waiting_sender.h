// A sender that goes on waiting for an answer, until it has gone.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/shard/shard.h"

namespace leeway::testing {

class FakeWaitingSender : public WaitingSender {
 public:
  using Told = std::vector<std::pair<uint64_t, std::string>>;

  bool gone() const override { return has_gone; }
  void OnMissing(uint64_t id, const std::string& missing) override {
    told.emplace_back(id, missing);
  }

  bool has_gone = false;
  // Which request it is told about, and what that request waits for.
  Told told;
};

}  // namespace leeway::testing
