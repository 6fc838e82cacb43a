// Exchanges with the servers together with the other workers of this host (workers.per_host:
// combine, client/calls/host_group.h). The leader keeps its blocks until the other workers have
// published theirs, and then sends the sum. It looks for their contributions in Contribute and in
// Poll, and Finish waits for the remaining ones. The other workers publish their blocks, and tell
// the servers only that the leader's sum includes their contribution.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "client/calls/host_group.h"
#include "exchange/carriers/server_carrier.h"

namespace leeway {

class HostGroupCarrier final : public ServerCarrier {
 public:
  // The group outlives the carrier.
  HostGroupCarrier(ParameterClient& client, HostGroup& group, std::function<Time()> now)
      : ServerCarrier(client, std::move(now)), group_(group) {}

  FloatBuffer MakeVector() override;
  void Renew() override;
  // `rates` must be null, because the rates of one worker cannot apply to a sum.
  void Contribute(BlockRange blocks, uint64_t examples, const ContributionRates& rates,
                  std::span<float> contribution, std::span<float> weights) override;
  absl::Status Finish() override;
  void Poll() override;
  bool Abandon() override;

 private:
  // Blocks that the leader keeps until the other workers have published them.
  struct Kept {
    BlockRange blocks;
    uint64_t examples = 0;
    std::span<float> contribution;
    std::span<float> weights;
  };
  // For each entry of kept_: sends the leading blocks that all workers have published, and removes
  // them from the entry.
  absl::Status SendComplete();
  absl::Status SendComplete(Kept& kept);

  HostGroup& group_;
  std::vector<Kept> kept_;
};

// Returns the carrier of a worker: one that combines contributions if the worker has a group on its
// host, or else a ServerCarrier. References outlive the carrier.
std::unique_ptr<Carrier> MakeServerCarrier(
    ParameterClient& client, HostGroup* group,
    std::function<Time()> now = [] { return std::chrono::steady_clock::now(); });

}  // namespace leeway
