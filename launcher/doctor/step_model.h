// The arithmetic of `leeway doctor`: computes the time of a job's step from the times of its parts.
// Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace leeway {

// The parts of one clock of all workers, in seconds.
struct StepParts {
  // The wall time of one worker's steps of a clock, including reading batches, on a processor that
  // no other worker uses.
  double compute = 0;
  // The processor time of the same steps.
  double compute_cpu = 0;
  // The wall time of an exchange while nothing else runs.
  double exchange = 0;
  // The processor time of the same exchange, of all processes together.
  double exchange_cpu = 0;
  // The share of the parameters that the first trained layer has. Its gradient is ready last and
  // its weights are needed first, so nothing hides the exchange of this layer.
  double first_layer_share = 1;
  // The part of the compute that can hide the exchange. A gradient leaves in the clock's last step,
  // and the new weights arrive in the next forward pass. If the exchange is spread, the whole
  // compute can hide it. If the whole gradient is checked before any of it is sent, no compute can
  // hide the exchange.
  double hides_behind = 0;
  uint32_t workers = 1;
  // The number of workers that share a processor, at least 1. While all workers compute, each
  // worker's compute takes `turns` times as long.
  double turns = 1;
  // The number of processors that workers and servers share, or 0 if each has its own machine.
  uint32_t processors = 0;
  // The wall time that one second of processor time takes. Above 1 if other programs use the
  // machine, too.
  double stretch = 1;
};

struct StepEstimate {
  // The time of a clock.
  double seconds = 0;
  // The part of the exchange for which no worker waits.
  double hidden_seconds = 0;
  // True if the processors limit the speed, and not the sequence of compute and exchange.
  bool processor_bound = false;
};
StepEstimate EstimateStep(const StepParts& parts);

// Returns the seconds of an exchange that compute hides. `share` is the share of the exchange
// during which a worker did not wait. The result is at most the compute's time. The limit is
// necessary because `share` may be too high: a worker notices the end of an exchange only when it
// next checks.
double HiddenSeconds(const StepParts& parts, double share);

// The rate of blocks of one size.
struct BlockRate {
  uint64_t block_bytes = 0;
  double gigabytes_per_second = 0;
};
// Returns the smallest block size whose rate is within 5 % of the highest rate. The size is
// limited, so that each server has some blocks to work on while other blocks travel. `rates` must
// be ascending by size, and not empty.
uint64_t ChooseBlockBytes(const std::vector<BlockRate>& rates, uint64_t model_bytes,
                          uint32_t servers);

struct ServerChoice {
  uint32_t servers = 1;
  // Whether the exchange takes at most as long as the compute. If not, `servers` is the maximum.
  bool enough = true;
};
// Returns the fewest servers with which the exchange takes no longer than the compute, but at most
// `most`. All servers together move `bytes` in each direction for each worker, and each server
// moves `server_rate` bytes a second in each direction.
ServerChoice ChooseServers(double bytes, uint32_t workers, double server_rate,
                           double compute_seconds, uint32_t most);

// Returns how many of a job's workers or servers to start for a measurement: at most 32, and at
// most as many as half of the memory holds. Each process needs several times `model_bytes`.
uint32_t ProcessesToMeasure(uint32_t wanted, uint64_t model_bytes, uint64_t memory_bytes);

}  // namespace leeway
