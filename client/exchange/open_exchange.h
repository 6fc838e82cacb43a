// The exchange of one clock, from its first block's departure to its last block's answer.
//
// If workers of one host combine their contributions (client/calls/host_group.h), a block leaves in
// one of two other ways. The leader keeps it until the others have published theirs, and then sends
// the sum. It looks for their contributions in Send and in Poll, and SendRest waits for what is
// left. Another worker publishes the block, and tells the servers only that its contribution is
// combined.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/calls/block_range.h"
#include "client/calls/host_group.h"
#include "client/calls/parameter_client.h"
#include "client/exchange/clock_exchange.h"
#include "common/blocks.h"
#include "common/clock.h"
#include "common/update/rule.h"

namespace leeway {

// Not thread-safe. The memory that it sends from and receives into outlives the client's calls.
class OpenExchange {
 public:
  // For `group` see ExchangeContext.
  OpenExchange(ParameterClient& client, std::function<Time()> now, HostGroup* group = nullptr);

  // Begins the exchange of `clock`, with contributions made of `examples`. The previous exchange is
  // over. `rates` are those of a worker without a group.
  void Begin(uint64_t clock, uint64_t examples = 0, ContributionRates rates = nullptr);
  // PushPull of these blocks, which all wait together. The contribution of a group's leader becomes
  // the group's.
  void Send(BlockRange blocks, std::span<float> contribution, std::span<float> weights);
  // The same for a contribution that is made of another number of examples.
  void Send(BlockRange blocks, uint64_t examples, std::span<float> contribution,
            std::span<float> weights);
  // Returns when the client has every block. A group's leader may have to wait for that. Returns
  // the group's errors. Call it after the last Send.
  absl::Status SendRest();

  // Waits until the blocks that hold some of these elements are answered, as far as they were sent.
  // Returns the client's errors.
  absl::Status WaitFor(std::span<const ElementRange> elements);
  absl::Status WaitForAll();
  // The same, but at most until the deadline. False if they are not answered by then.
  absl::StatusOr<bool> WaitFor(std::span<const ElementRange> elements, Time deadline);
  absl::StatusOr<bool> WaitForAll(Time deadline);
  // Notes answers that have come meanwhile. Without it the end of an exchange that nobody waits for
  // stays unknown.
  void Poll();

  // Gives up what is in progress, and returns when all of it has ended.
  void Abandon();

  // True after Begin(), until End() or Abandon().
  bool under_way() const { return under_way_; }
  // The clock of the latest exchange.
  uint64_t clock() const { return report_.clock; }
  // Call this when all blocks are sent and answered. Returns what was measured.
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
  // Sends the first blocks of `kept` that are complete, and drops them from it.
  absl::Status SendComplete(Kept& kept);
  // Sends what every other worker of the group has published by now. SendRest returns its error.
  absl::Status SendComplete();
  // Waits for the parts for which `wanted` is true. False if the deadline came first.
  absl::StatusOr<bool> WaitWhere(const std::function<bool(const Part&)>& wanted, Time deadline);
  // Takes the result of a part that was answered.
  void Take(const Part& part, const ParameterClient::Result& result);
  // True if every block has its answer.
  bool answered() const;

  ParameterClient& client_;
  const std::function<Time()> now_;
  HostGroup* const group_;

  bool under_way_ = false;
  uint64_t examples_ = 0;
  ContributionRates rates_;
  // What a leader keeps back, in the order of completion.
  std::vector<Kept> kept_;
  // Parts that are not answered yet, in the order of departure.
  std::vector<Part> parts_;
  uint32_t blocks_answered_ = 0;
  Time began_;
  Time ended_;
  Duration waited_{};
  ExchangeReport report_;
};

}  // namespace leeway
