// One worker's part in the mean of all weights, which the blocks hold in a gossip job. At the
// clocks of mean_clocks.h the worker sends the mean that it knows minus its own weights x. At other
// clocks it sends no values, only that the clock is made.
//
// In sync mode all workers know the same mean and send at the same clock, so the new mean is exact.
// In async mode each contribution moves the mean by 1/n of the way to x. So the mean follows the
// workers with a delay of about n contributions, and what a lost worker had sent fades.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "client/calls/parameter_client.h"
#include "common/buffer.h"
#include "exchange/carriers/mean_clocks.h"
#include "exchange/carriers/server_carrier.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Not thread-safe.
class GossipMean {
 public:
  // The client outlives the object.
  GossipMean(const v1::RegisterWorkerReply& registration, ParameterClient& client,
             std::function<Time()> now);

  // Reads the mean, as Carrier::Read does.
  absl::StatusOr<std::optional<uint64_t>> Read(uint64_t clock, std::span<float> weights,
                                               Time deadline);
  absl::Status ReadLatest(std::span<float> weights) { return reader_.ReadLatest(weights); }

  void Begin(uint64_t clock);
  // Sends this worker's part, for its weights x, or says that the clock is made. The clock has this
  // number of examples, which counts for averaged elements. First waits until the clock before is
  // answered.
  absl::Status Tell(std::span<const float> x, uint64_t examples);
  // Waits for the answer. Returns false if the deadline came first.
  absl::StatusOr<bool> Await(Time deadline);
  // Waits until no call is in progress. Call this after an error.
  void Settle();

  // Returns true if the clock is one at which the mean is exchanged.
  bool is_mean() const { return is_mean_; }
  // Returns true if the clock is complete only when the answer is there.
  bool is_awaited() const { return !sync_ || is_mean_ || mean_clocks_.MayStopBefore(clock_); }
  bool is_told() const { return is_told_; }
  // The number of updates of the mean that the worker knows of.
  uint64_t version() const { return version_; }
  std::span<const float> mean() const { return mean_.span(); }
  // Returns the distance of these weights from the mean.
  double DistanceOf(std::span<const float> weights) const;

 private:
  const bool sync_;
  const uint64_t trained_;
  const MeanClocks mean_clocks_;
  ParameterClient& client_;
  ServerCarrier reader_;
  // The mean as last read, and the change that is sent.
  FloatBuffer mean_, change_;
  uint64_t version_ = 0;
  uint64_t clock_ = 0;
  bool is_mean_ = false;
  bool is_told_ = false;
  // The call that is not answered yet.
  std::optional<ParameterClient::Ticket> told_;
};

}  // namespace leeway
