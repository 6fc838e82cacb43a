// The weights of a worker whose job averages workers in pairs. One such average is a meeting
// (proto: EXCHANGE_METHOD_MEET), and happens while the worker computes. A meeting of the weights x
// and y moves both to their mean (AD-PSGD, Lian et al. 2018). The receiver adds (x - y) / 2 to y,
// and answers with the old y. The sender then moves x by the opposite amount. So no meeting changes
// the sum of all weights. The server in the worker's process answers meetings
// (server/peers/meeting_store.h). Client and server depend on this interface only.
#pragma once

#include <cstdint>
#include <span>

#include "common/blocks.h"

namespace leeway {

// Thread-safe.
class MeetingPlace {
 public:
  virtual ~MeetingPlace() = default;

  // Begins a registration, with these weights (the whole vector). Meetings of another job or
  // generation, or before the first Open, are refused, and answers of an earlier registration are
  // forgotten. `layout` outlives the last call that names a block.
  virtual void Open(uint64_t job, uint64_t generation, const BlockLayout& layout,
                    std::span<const float> weights) = 0;
  // Subtracts `change` from the block's weights, and writes the result to `weights`. Both spans
  // have the block's elements. A meeting takes effect in full, whether it comes before or after
  // this call.
  virtual void Subtract(uint32_t block, std::span<const float> change,
                        std::span<float> weights) = 0;
  // Ends the meetings for good. Later ones are refused, so that other workers meet somebody else.
  virtual void End() = 0;
};

}  // namespace leeway
