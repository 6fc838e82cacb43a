// How a worker mixes its weights x with those of others in a clock.
//
// sync: worker i publishes x_i, fetches its neighbours' x_j of the same clock, and goes on with
// sum_j w_ij x_j (D-PSGD, Lian et al. 2017, with the steps before the mean; config/gossip_graph.h).
// It waits for its neighbours only.
//
// async: worker i meets one other worker, and both move to their mean (AD-PSGD, Lian et al. 2018;
// common/peers/meeting_place.h). It waits for nobody's steps, because a worker answers between its
// own. If the other worker is lost, it meets another one.
//
// Neither changes the sum of all weights.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "client/calls/peer_calls.h"
#include "common/blocks.h"
#include "common/peers/meeting_place.h"
#include "common/peers/outbox.h"
#include "exchange/carriers/peer_steps.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// What one worker mixes with. The referenced objects outlive the mix.
struct GossipContext {
  const v1::RegisterWorkerReply& registration;
  const BlockLayout& layout;
  PeerCalls& peers;
  Outbox& outbox;
  MeetingPlace& meetings;
  PeerSteps& steps;
};

// Only the exchange's thread calls it. Blocks go on on threads of the transport.
class GossipMix {
 public:
  virtual ~GossipMix() = default;
  // Begins at `clock` with these weights. Call this once.
  virtual void Open(uint64_t clock, std::span<const float> weights) = 0;
  virtual void Begin(uint64_t clock) = 0;
  // Takes the change of a block by the clock's steps, x_before - x, in its trained elements, and x
  // in its averaged elements. Writes x to `change` (in async mode with the meetings of meanwhile),
  // and the mixed weights to `weights`, which hold x_before. Both spans stay until the block is
  // done.
  virtual void Take(uint32_t block, std::span<float> change, std::span<float> weights) = 0;
  // Ends the mixing for good, so that others mix with somebody else.
  virtual void End() {}
};

std::unique_ptr<GossipMix> MakeNeighbourMix(const GossipContext& context);
std::unique_ptr<GossipMix> MakeMeetings(const GossipContext& context);

}  // namespace leeway
