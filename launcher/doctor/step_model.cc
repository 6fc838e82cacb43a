#include "launcher/doctor/step_model.h"

#include <algorithm>
#include <cmath>

namespace leeway {
namespace {

constexpr double kNearlyFastest = 0.95;
// The minimum number of blocks of each server: one is sent, one is updated, one comes back, and one
// more is ready.
constexpr uint64_t kBlocksAtLeast = 4;

constexpr uint64_t kProcessesMax = 32;
// The number of copies of the model for which a process needs memory: weights, contribution, slots,
// and the memory that it shares with other processes.
constexpr uint64_t kCopiesOfModel = 6;

}  // namespace

StepEstimate EstimateStep(const StepParts& parts) {
  StepEstimate estimate;
  const double can_hide = parts.exchange * (1 - std::clamp(parts.first_layer_share, 0.0, 1.0));
  estimate.hidden_seconds = std::min(can_hide, parts.hides_behind);
  estimate.seconds = parts.compute + parts.exchange - estimate.hidden_seconds;
  if (parts.processors == 0) return estimate;
  const double busy = parts.workers * parts.compute_cpu + parts.exchange_cpu;
  const double bound = parts.stretch * busy / parts.processors;
  if (bound > estimate.seconds) {
    // An exchange that is hidden from the workers is still work for the processors.
    estimate.hidden_seconds = std::max(0.0, parts.compute + parts.exchange - bound);
    estimate.seconds = bound;
    estimate.processor_bound = true;
  }
  return estimate;
}

double HiddenSeconds(const StepParts& parts, double share) {
  return std::min(share * parts.exchange, parts.turns * parts.hides_behind);
}

uint64_t ChooseBlockBytes(const std::vector<BlockRate>& rates, uint64_t model_bytes,
                          uint32_t servers) {
  double fastest = 0;
  for (const BlockRate& rate : rates) fastest = std::max(fastest, rate.gigabytes_per_second);
  uint64_t chosen = rates.back().block_bytes;
  for (const BlockRate& rate : rates) {
    if (rate.gigabytes_per_second < kNearlyFastest * fastest) continue;
    chosen = rate.block_bytes;
    break;
  }
  const uint64_t share = model_bytes / std::max<uint32_t>(servers, 1);
  while (chosen > rates.front().block_bytes && chosen * kBlocksAtLeast > share) chosen /= 2;
  return chosen;
}

ServerChoice ChooseServers(double bytes, uint32_t workers, double server_rate,
                           double compute_seconds, uint32_t most) {
  if (server_rate <= 0 || compute_seconds <= 0) return {};
  const double wanted = std::ceil(bytes * workers / server_rate / compute_seconds);
  const double limit = std::max(most, 1u);
  return {.servers = static_cast<uint32_t>(std::clamp(wanted, 1.0, limit)),
          .enough = wanted <= limit};
}

uint32_t ProcessesToMeasure(uint32_t wanted, uint64_t model_bytes, uint64_t memory_bytes) {
  const uint64_t fitting = memory_bytes / 2 / (kCopiesOfModel * std::max<uint64_t>(model_bytes, 1));
  const uint64_t most = std::clamp<uint64_t>(fitting, 1, kProcessesMax);
  return static_cast<uint32_t>(std::min<uint64_t>(wanted, most));
}

}  // namespace leeway
