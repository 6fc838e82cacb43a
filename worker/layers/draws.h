// The random draws of a layer.
#pragma once

#include "common/philox.h"
#include "worker/layers/layer.h"

namespace leeway {

// Returns the key of dropout's draws, which is a pure function of (seed, step, rank, layer). So a
// step that is computed again drops the same elements.
inline DropoutKey DropoutKeyOf(const Pass& pass) {
  RandomStream stream(pass.draw.seed, RandomPurpose::kDropout,
                      {pass.draw.step, pass.draw.rank, pass.layer});
  const uint64_t key = stream.NextU64();
  return {key, stream.NextU64()};
}

}  // namespace leeway
