#include "config/shards.h"

#include <algorithm>

#include "config/external.h"
#include "config/topology.h"
#include "plugin/leeway/plugin.h"

namespace leeway {
namespace {

// Returns true if servers send changes of some block. They then keep the weights that the workers
// have, for every block.
bool SendsChanges(const v1::Compression& compression) {
  // `auto` never stands for top_k or sign (common/codec/choose.h).
  const auto changes = [](const v1::Codec& weights) {
    return weights.has_top_k() || weights.has_sign();
  };
  const auto& layers = compression.layers();
  return changes(compression.weights()) ||
         std::any_of(layers.begin(), layers.end(),
                     [&](const v1::LayerCompression& layer) { return changes(layer.weights()); });
}

}  // namespace

uint32_t ShardsOf(const v1::TrainingJob& job) {
  const v1::Servers& servers = job.servers();
  if (WorkersHoldBlocks(job)) return job.workers().count();
  return servers.shards() == 0 ? std::max(servers.count(), servers.max()) : servers.shards();
}

uint32_t ServersMost(const v1::TrainingJob& job) { return FirstHolderOf(job) + ShardsOf(job); }

uint32_t ServersMin(const v1::TrainingJob& job) {
  const v1::Servers& servers = job.servers();
  return servers.min() == 0 ? ServersOf(job) : servers.min();
}

uint64_t StateVectors(const v1::TrainingJob& job) {
  const v1::Update& update = job.update();
  uint64_t vectors = 1;
  if (!job.exchange().has_elastic()) {
    // A rule that a worker supplies may have as many slots as Adam.
    if (update.has_adam() || update.has_adamw() || BringsUpdate(job)) vectors += 2;
    if (update.has_custom()) vectors += plugin::kSlotsMax;
    if (update.has_adagrad() || update.has_lion() || update.sgd().momentum() > 0) vectors += 1;
  }
  if (update.has_average()) vectors += 1;
  if (update.steps_by_element() || BringsUpdate(job)) vectors += 1;
  if (SendsChanges(job.compression())) vectors += 1;
  if (job.consistency().mode() == v1::CONSISTENCY_MODE_SYNC) vectors += 1;
  return vectors;
}

}  // namespace leeway
