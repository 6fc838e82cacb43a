// The exchange of one clock, from its first block's departure to its last block's answer.
//
// Where workers of one host combine their contributions (client/host_group.h), a block leaves in
// one of two other ways. The leader keeps it until the others have published theirs, and then sends
// the sum: it looks in Send and in Poll, and SendRest waits for what is left. Another worker
// publishes the block, and the servers hear from it only that its contribution is combined.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/block_range.h"
#include "client/exchange/clock_exchange.h"
#include "client/host_group.h"
#include "client/parameter_client.h"
#include "common/blocks.h"
#include "common/clock.h"
#include "common/update/rule.h"

namespace leeway {

// Not thread-safe. What it sends and receives into outlives the client's calls.
class OpenExchange {
 public:
  // `group`: as in ExchangeContext.
  OpenExchange(ParameterClient& client, std::function<Time()> now, HostGroup* group = nullptr);

  // The exchange of `clock`, with contributions made of `examples`. The one before is over.
  // `rates`: of a worker without a group.
  void Begin(uint64_t clock, uint64_t examples = 0, ContributionRates rates = nullptr);
  // From now on: those of the blocks that are sent later.
  void SetRates(ContributionRates rates);
  // PushPull of these blocks, all of which wait together. The contribution of a group's leader
  // becomes the group's.
  void Send(BlockRange blocks, std::span<float> contribution, std::span<float> weights);
  // The same, of a contribution that is made of another number of examples.
  void Send(BlockRange blocks, uint64_t examples, std::span<float> contribution,
            std::span<float> weights);
  // Returns when the client has every block, which a group's leader may have to wait for. The
  // group's errors. Call it after the last Send.
  absl::Status SendRest();

  // Until the blocks that hold some of these elements are answered, as far as they were sent. The
  // client's errors.
  absl::Status WaitFor(std::span<const ElementRange> elements);
  absl::Status WaitForAll();
  // The same, no longer than until the deadline: false if they are not answered by then.
  absl::StatusOr<bool> WaitFor(std::span<const ElementRange> elements, Time deadline);
  absl::StatusOr<bool> WaitForAll(Time deadline);
  // Takes note of answers that have come meanwhile. Only by it is the end of an exchange that
  // nobody had to wait for known.
  void Poll();

  // Gives up what is under way; returns when none of it is any more.
  void Abandon();

  // Begun, and neither End() nor Abandon() yet called.
  bool under_way() const { return under_way_; }
  // Of the latest exchange.
  uint64_t clock() const { return report_.clock; }
  // All blocks are sent and answered: what was seen.
  ExchangeReport End();

 private:
  struct Part {
    BlockRange blocks;
    ParameterClient::Ticket ticket;
  };
  // What a group's leader keeps back.
  struct Kept {
    BlockRange blocks;
    uint64_t examples = 0;
    std::span<float> contribution;
    std::span<float> weights;
  };
  // Sends of `kept` the leading blocks that are complete, and drops them from it.
  absl::Status SendComplete(Kept& kept);
  // What every other worker of the group has published by now. Its error stays, for SendRest.
  absl::Status SendComplete();
  // Waits for those of which `wanted`. False if the deadline came first.
  absl::StatusOr<bool> WaitWhere(const std::function<bool(const Part&)>& wanted, Time deadline);
  // Of a part that was answered.
  void Take(const Part& part, const ParameterClient::Result& result);
  // Every block has its answer.
  bool answered() const;

  ParameterClient& client_;
  const std::function<Time()> now_;
  HostGroup* const group_;

  bool under_way_ = false;
  uint64_t examples_ = 0;
  ContributionRates rates_;
  // A leader's, in the order of completion.
  std::vector<Kept> kept_;
  // Not answered yet, in the order of departure.
  std::vector<Part> parts_;
  uint32_t blocks_answered_ = 0;
  Time began_;
  Time ended_;
  Duration waited_{};
  ExchangeReport report_;
};

}  // namespace leeway
