#include "config/shards.h"

namespace leeway {

uint32_t ShardsOf(const v1::TrainingJob& job) {
  const v1::Servers& servers = job.servers();
  return servers.shards() == 0 ? servers.count() : servers.shards();
}

uint64_t StateVectors(const v1::TrainingJob& job) {
  const v1::Update& update = job.update();
  uint64_t vectors = 1;
  if (!job.exchange().has_elastic()) {
    if (update.has_adam() || update.has_adamw()) vectors += 2;
    if (update.has_adagrad() || update.sgd().momentum() > 0) vectors += 1;
  }
  if (!job.compression().weights().has_none()) vectors += 1;
  if (job.consistency().mode() == v1::CONSISTENCY_MODE_SYNC) vectors += 1;
  return vectors;
}

}  // namespace leeway
