#include "run/core/merge_metrics.h"

#include <algorithm>

namespace leeway {

void MergeMetrics(const v1::StepMetrics& more, v1::StepMetrics& record) {
  const uint64_t told = record.has_train_loss() ? record.examples() : 0;
  const uint64_t told_more = more.has_train_loss() ? more.examples() : 0;
  if (told_more > 0) {
    record.set_train_loss((record.train_loss() * static_cast<double>(told) +
                           more.train_loss() * static_cast<double>(told_more)) /
                          static_cast<double>(told + told_more));
  }
  record.set_clock(more.clock());
  record.set_epoch(more.epoch());
  record.set_learning_rate(more.learning_rate());
  record.set_steps(record.steps() + more.steps());
  record.set_examples(record.examples() + more.examples());
  record.set_staleness(std::max(record.staleness(), more.staleness()));
  record.set_data_seconds(record.data_seconds() + more.data_seconds());
  record.set_compute_seconds(record.compute_seconds() + more.compute_seconds());
  record.set_exchange_seconds(record.exchange_seconds() + more.exchange_seconds());
  record.set_forward_seconds(record.forward_seconds() + more.forward_seconds());
  record.set_backward_seconds(record.backward_seconds() + more.backward_seconds());
  record.set_wait_seconds(record.wait_seconds() + more.wait_seconds());
  record.set_bytes_sent(record.bytes_sent() + more.bytes_sent());
  record.set_bytes_received(record.bytes_received() + more.bytes_received());
  record.set_dropped_steps(record.dropped_steps() + more.dropped_steps());
  record.set_dropped_examples(record.dropped_examples() + more.dropped_examples());
  record.set_skipped_contributions(record.skipped_contributions() + more.skipped_contributions());
  record.set_replaced_pictures(record.replaced_pictures() + more.replaced_pictures());
  record.set_overflowed_steps(record.overflowed_steps() + more.overflowed_steps());
  if (more.loss_scale() > 0) record.set_loss_scale(more.loss_scale());
  record.set_clipped_contributions(record.clipped_contributions() + more.clipped_contributions());
}

}  // namespace leeway
