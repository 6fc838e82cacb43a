// With whom a worker exchanges. An exchange decides what to send and when. A carrier brings a
// clock's contribution to the others, block by block, and returns with the next weights.
//
// In each clock:
//
//   Renew                 before the contribution changes
//   Begin
//   Contribute            for each block once, in any order
//   Finish                after the last block
//   Await, AwaitAll       until the weights are there
//   End                   or Abandon
//
// The servers are one carrier (server_carrier.h), the workers of one host another
// (host_group_carrier.h). In a ring or a tree the workers pass sums on (relay_carrier.h); in gossip
// they mix their weights with those of some others (gossip_carrier.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/calls/block_range.h"
#include "client/calls/contribution_encoder.h"
#include "client/participant/clock_exchange.h"
#include "common/blocks.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/codec/plan.h"
#include "common/update/rule.h"

namespace leeway {

// Each vector is a whole flat vector, and outlives the calls that use it. Functions with a deadline
// return nothing or false if the deadline came first; call them again in the same way to go on. Not
// thread-safe.
class Carrier {
 public:
  virtual ~Carrier() = default;

  virtual const BlockLayout& layout() const = 0;
  // Makes a zeroed vector for contributions, if possible in memory that the others can read.
  virtual FloatBuffer MakeVector() = 0;

  // Reads the weights that a worker may see when it starts `clock`, and returns their version.
  // After ALREADY_EXISTS nothing is written to `weights` any more.
  virtual absl::StatusOr<std::optional<uint64_t>> Read(uint64_t clock, std::span<float> weights,
                                                       Time deadline) = 0;
  // Reads the current weights, without waiting for anybody.
  virtual absl::Status ReadLatest(std::span<float> weights) = 0;

  // Call this when the previous exchange is over, before the contribution vector changes.
  virtual void Renew() {}
  // Begins the exchange of `clock`. The previous exchange must be over.
  virtual void Begin(uint64_t clock) = 0;
  // Sends these blocks of a contribution, which is made of `examples`. `rates` are the factors of
  // its learning rate. The answer overwrites the blocks in `weights`. The carrier may write sums
  // into `contribution`.
  virtual void Contribute(BlockRange blocks, uint64_t examples, const ContributionRates& rates,
                          std::span<float> contribution, std::span<float> weights) = 0;
  // Waits until every block has left. Returns an error if a block cannot leave.
  virtual absl::Status Finish() = 0;
  // Waits until the contributed blocks that hold some of these elements are answered.
  virtual absl::StatusOr<bool> Await(std::span<const ElementRange> elements, Time deadline) = 0;
  virtual absl::StatusOr<bool> AwaitAll(Time deadline) = 0;
  // Notes which answers have come. Without this call the carrier would notice the end of an
  // exchange only at the next wait.
  virtual void Poll() {}
  // Gives up the exchange and the reads in progress, and waits until all their calls have ended.
  // Returns false if the carrier cannot go on; make a new one then.
  virtual bool Abandon() = 0;
  // Ends the exchange, and returns its measurements. All blocks must be contributed and answered.
  virtual ExchangeReport End() = 0;

  // Returns true after Begin(), until End() or Abandon().
  virtual bool under_way() const = 0;
  // The clock of the latest exchange.
  virtual uint64_t clock() const = 0;

  // Returns true if each worker has weights of its own between clocks, which its state must hold.
  virtual bool keeps_weights() const { return false; }
  // The mean of all workers' weights, as last read, if each worker has weights of its own. Empty
  // otherwise.
  virtual std::span<const float> mean() const { return {}; }

  // The object that encodes contributions and keeps the residual (client/calls/parameter_client.h).
  // Null for a carrier that keeps no residual.
  virtual ContributionEncoder* encoder() const { return nullptr; }
  bool keeps_residual() const { return encoder() != nullptr; }
  // The plan by which contributions are encoded. Null if they are not encoded.
  virtual const CodecPlan* codec_plan() const { return nullptr; }
  // Makes `encoder`, which outlives the carrier's calls, encode contributions and keep the
  // residual.
  virtual void EncodeBy(ContributionEncoder& encoder) {}
};

// Reads the weights with which a worker begins `clock`, and returns their version.
inline absl::StatusOr<uint64_t> ReadWeights(Carrier& carrier, uint64_t clock,
                                            std::span<float> weights) {
  const auto version = carrier.Read(clock, weights, Time::max());
  if (!version.ok()) return version.status();
  return version->value();
}

}  // namespace leeway
