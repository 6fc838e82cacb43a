// For shards whose cuts are not read.
#pragma once

#include "server/shard/shard.h"

namespace leeway::testing {

class NoCuts : public CutListener {
 public:
  void OnHeld(uint64_t, HeldBlock) override {}
};

}  // namespace leeway::testing
