#include "run/steps.h"

#include <algorithm>

#include "common/first_step.h"
#include "config/contributors.h"

namespace leeway {

std::optional<std::vector<uint64_t>> StepsOfClocks(const v1::TrainingJob& job,
                                                   uint64_t steps_per_epoch,
                                                   std::span<const uint64_t> clocks,
                                                   StartPoint start) {
  if (CommitsSets(job) || job.data().assignment() == v1::ASSIGNMENT_LEASED) return std::nullopt;
  const v1::JobLength length = ComputeLength(job, steps_per_epoch, start);
  const bool ends_known = job.stop().has_clocks() || steps_per_epoch > 0;
  const bool may_be_short = length.total_clocks() == 0 && length.steps_per_clock() > 1;
  if (may_be_short && !ends_known) return std::nullopt;
  // The last clock contains the job's remaining steps, whose number may differ from worker to
  // worker.
  const uint64_t end = FirstStep(length, length.clocks());
  const uint64_t missing = may_be_short ? end - std::min(end, length.steps()) : 0;
  std::vector<uint64_t> steps;
  for (const uint64_t clock : clocks) {
    const uint64_t whole = clock * length.steps_per_clock();
    steps.push_back(clock < length.clocks() ? whole : whole - missing);
  }
  return steps;
}

uint64_t BatchesOf(const v1::DataProgress& data) {
  uint64_t batches = data.next();
  for (const v1::DataRange& open : data.open()) batches -= std::min(batches, open.count());
  return batches;
}

}  // namespace leeway
