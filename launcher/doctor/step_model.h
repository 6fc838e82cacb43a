// What a step of a job takes, from what its parts take: the arithmetic of `leeway doctor`. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace leeway {

// Of one clock of all workers; seconds.
struct StepParts {
  // One worker's steps of a clock, batches included, on a processor that it shares with no other
  // worker; and as processor time.
  double compute = 0;
  double compute_cpu = 0;
  // An exchange with nothing else going on; and as processor time of all processes together.
  double exchange = 0;
  double exchange_cpu = 0;
  // Of the parameters that the first trained layer has: its gradient is ready last and its weights
  // are needed first, so nothing hides their exchange.
  double first_layer_share = 1;
  // Of the compute, what the exchange goes on behind: a gradient's leaves in the clock's last step
  // and comes back in the next one's forward pass; where it is spread, all of it; where the
  // gradient is judged as a whole before it leaves, nothing.
  double hides_behind = 0;
  uint32_t workers = 1;
  // How many of them share a processor, 1 or more: with all at once compute takes so many times as
  // long.
  double turns = 1;
  // That workers and servers share; 0: they have machines of their own.
  uint32_t processors = 0;
  // Seconds that pass for a second of processor time: above 1 where others use the machine too.
  double stretch = 1;
};

struct StepEstimate {
  // Of a clock.
  double seconds = 0;
  // Of the exchange, what no worker waits for.
  double hidden_seconds = 0;
  // The processors are what limits, not the chain of compute and exchange.
  bool processor_bound = false;
};
StepEstimate EstimateStep(const StepParts& parts);

// What of an exchange compute hides, if a worker did not wait for `share` of it: that may be more
// than there is compute, for what a worker sees of an exchange ends when it next looks.
double HiddenSeconds(const StepParts& parts, double share);

// How fast blocks of one size went.
struct BlockRate {
  uint64_t block_bytes = 0;
  double gigabytes_per_second = 0;
};
// The smallest block that comes within 5 % of the fastest, but small enough that each server has
// some blocks to be busy with while others travel. `rates` ascending by size, not empty.
uint64_t ChooseBlockBytes(const std::vector<BlockRate>& rates, uint64_t model_bytes,
                          uint32_t servers);

struct ServerChoice {
  uint32_t servers = 1;
  // To keep the exchange no longer than the compute; else they are the most that there may be.
  bool enough = true;
};
// The fewest servers with which the exchange takes no longer than the compute, if all move
// `bytes` each way for each worker, and each `server_rate` bytes a second in each direction; at
// most `most`.
ServerChoice ChooseServers(double bytes, uint32_t workers, double server_rate,
                           double compute_seconds, uint32_t most);

// How many of a job's workers or servers are started to be measured at once: 32 at most, and no
// more than half of the memory holds, each with `model_bytes` of a model some times over.
uint32_t ProcessesToMeasure(uint32_t wanted, uint64_t model_bytes, uint64_t memory_bytes);

}  // namespace leeway
