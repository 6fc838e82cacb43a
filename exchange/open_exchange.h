// The exchange of one clock, from sending the first block to the last block's answer.
//
// If workers of one host combine their contributions (client/calls/host_group.h), a block is sent
// in one of two other ways. The leader keeps its block until the other workers have published
// theirs, and then sends the sum. It looks for their contributions in Send and in Poll, and
// SendRest waits for the remaining ones. The other workers publish the block, and tell the servers
// only that the contribution is combined.
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
#include "client/participant/clock_exchange.h"
#include "common/blocks.h"
#include "common/clock.h"
#include "common/update/rule.h"

namespace leeway {

// Not thread-safe. The vectors that are passed to Send outlive the client's calls.
class OpenExchange {
 public:
  // For `group` see ExchangeContext.
  OpenExchange(ParameterClient& client, std::function<Time()> now, HostGroup* group = nullptr);

  // Begins the exchange of `clock`, with contributions made of `examples`. The previous exchange is
  // over. `rates` are the learning-rate factors of the contribution; only a worker without a group
  // may set them.
  void Begin(uint64_t clock, uint64_t examples = 0, ContributionRates rates = nullptr);
  // From now on: those of the blocks that are sent later.
  void SetRates(ContributionRates rates);
  // Begins a PushPull of these blocks in one call. In a group's leader, the group's sum overwrites
  // `contribution`.
  void Send(BlockRange blocks, std::span<float> contribution, std::span<float> weights);
  // The same for a contribution that is made of another number of examples than Begin() was told.
  void Send(BlockRange blocks, uint64_t examples, std::span<float> contribution,
            std::span<float> weights);
  // Returns when every block has been passed to the client. A group's leader may have to wait for
  // the other workers first. Returns the group's errors. Call it after the last Send.
  absl::Status SendRest();

  // Waits until those blocks are answered that hold some of these elements and were sent. Returns
  // the client's errors.
  absl::Status WaitFor(std::span<const ElementRange> elements);
  absl::Status WaitForAll();
  // The same two waits, but at most until the deadline. Return false if the blocks are not answered
  // by then.
  absl::StatusOr<bool> WaitFor(std::span<const ElementRange> elements, Time deadline);
  absl::StatusOr<bool> WaitForAll(Time deadline);
  // Notes answers that have come meanwhile. Without this the end of an exchange would not be
  // noticed until the next wait.
  void Poll();

  // Gives up the exchange, and returns when none of its calls is in progress any more.
  void Abandon();

  // Returns true after Begin(), until End() or Abandon().
  bool under_way() const { return under_way_; }
  // The clock of the latest exchange.
  uint64_t clock() const { return report_.clock; }
  // Ends the exchange, when all blocks are sent and answered. Returns its measurements.
  ExchangeReport End();

 private:
  struct Part {
    BlockRange blocks;
    ParameterClient::Ticket ticket;
  };
  // Blocks that a group's leader keeps until the other workers have published them.
  struct Kept {
    BlockRange blocks;
    uint64_t examples = 0;
    std::span<float> contribution;
    std::span<float> weights;
  };
  // Sends the first blocks of `kept` that all workers have published, and removes them from `kept`.
  absl::Status SendComplete(Kept& kept);
  // Does this for all kept blocks. SendRest returns the error of this function.
  absl::Status SendComplete();
  // Waits for the parts for which `wanted` is true. Returns false if the deadline came first.
  absl::StatusOr<bool> WaitWhere(const std::function<bool(const Part&)>& wanted, Time deadline);
  // Adds the result of a part that was answered to the report.
  void Take(const Part& part, const ParameterClient::Result& result);
  // Returns true if every block has its answer.
  bool answered() const;

  ParameterClient& client_;
  const std::function<Time()> now_;
  HostGroup* const group_;

  bool under_way_ = false;
  uint64_t examples_ = 0;
  ContributionRates rates_;
  // The blocks that a leader keeps, in the order in which they were complete.
  std::vector<Kept> kept_;
  // The parts that are not answered yet, in the order in which they were sent.
  std::vector<Part> parts_;
  uint32_t blocks_answered_ = 0;
  Time began_;
  Time ended_;
  Duration waited_{};
  ExchangeReport report_;
};

}  // namespace leeway
