// Who waits on for an answer, until it has gone.
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
  // Of which request, and what it waits for.
  Told told;
};

}  // namespace leeway::testing
