#include "config/length.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/codec/lossless.h"
#include "common/first_step.h"
#include "common/loss_scale.h"
#include "config/external.h"
#include "config/topology.h"

namespace leeway {
namespace {

// The largest number of steps. It is below 2^53, so that a double holds it exactly.
constexpr uint64_t kStepsMax = 1'000'000'000'000'000;

// The largest number of batches. It is far above any data set's, and small enough that sums do not
// overflow.
constexpr uint64_t kBatchesMax = uint64_t{1} << 60;

uint64_t Product(uint64_t a, uint64_t b) { return a > kStepsMax / b ? kStepsMax : a * b; }

// Returns count / size, rounded up. A size of 0 counts as 1.
uint64_t CeilOf(uint64_t count, uint64_t size) {
  return count == 0 ? 0 : (count - 1) / std::max<uint64_t>(size, 1) + 1;
}

// Rounds up, but ignores rounding errors: 1.1 epochs of 10 steps are 11 steps, although 1.1 * 10 is
// slightly more in binary.
uint64_t CeilSteps(double steps) {
  constexpr double kRounding = 1e-12;
  const double whole = std::ceil(steps - steps * kRounding);
  if (!(whole < static_cast<double>(kStepsMax))) return kStepsMax;
  return std::max<uint64_t>(1, static_cast<uint64_t>(std::max(whole, 0.0)));
}

uint64_t KeptSteps(uint64_t steps_per_epoch) {
  return std::clamp<uint64_t>(steps_per_epoch, 1, kStepsMax);
}

// Returns the step before which the job stops.
uint64_t StepsUntil(const v1::Interval& stop, const v1::JobLength& length) {
  if (!stop.has_clocks()) {
    return CeilSteps(stop.epochs() * static_cast<double>(length.steps_per_epoch()));
  }
  const uint64_t clocks = std::max<uint64_t>(1, stop.clocks());
  const uint64_t since = clocks - std::min(clocks, length.first_clock());
  const uint64_t before = Product(length.first_clock() - std::min(clocks, length.first_clock()),
                                  length.steps_per_clock());
  // If the stop is before the first clock, count back from the first step.
  const uint64_t first = length.first_step() - std::min(length.first_step(), before);
  return std::min(first + Product(since, length.steps_per_clock()), kStepsMax);
}

// Returns the number of clocks that are over when `step` is the next step. The last clock may have
// fewer steps.
uint64_t ClocksUntil(uint64_t step, const v1::JobLength& length) {
  const uint64_t first = length.first_step(), each = length.steps_per_clock();
  if (step >= first) return length.first_clock() + CeilOf(step - first, each);
  const uint64_t back = (first - step) / each;
  return std::max<uint64_t>(1, length.first_clock() - std::min(length.first_clock(), back));
}

// Returns true if the rule has slots, or may have slots. A plugin's rule always may.
bool HasSlots(const v1::Update& update) {
  if (update.has_sgd()) return update.sgd().momentum() > 0;
  return update.has_adagrad() || update.has_adam() || update.has_adamw() || update.has_lion() ||
         update.has_custom();
}

// Returns true if some contributions are compressed.
bool KeepsResidual(const v1::Compression& compression) {
  return !IsLossless(compression.contributions()) ||
         std::any_of(compression.layers().begin(), compression.layers().end(),
                     [](const v1::LayerCompression& layers) {
                       return !IsLossless(layers.contributions());
                     });
}

}  // namespace

uint64_t StepsPerClock(const v1::TrainingJob& job) {
  uint64_t steps = 1;
  switch (job.exchange().type_case()) {
    case v1::Exchange::kGradient:
      steps = job.exchange().gradient().accumulation();
      break;
    case v1::Exchange::kDelta:
      steps = job.exchange().delta().local_steps();
      break;
    case v1::Exchange::kElastic:
      steps = job.exchange().elastic().every();
      break;
    case v1::Exchange::TYPE_NOT_SET:
      break;
  }
  return std::max<uint64_t>(1, steps);
}

uint64_t StepsPerEpoch(const v1::TrainingJob& job, std::span<const uint64_t> steps_of_workers) {
  if (steps_of_workers.empty()) return 0;
  if (job.consistency().mode() != v1::CONSISTENCY_MODE_ASYNC) {
    return *std::max_element(steps_of_workers.begin(), steps_of_workers.end());
  }
  uint64_t sum = 0;
  for (const uint64_t steps : steps_of_workers) sum += std::min(steps, kStepsMax);
  return (sum + steps_of_workers.size() - 1) / steps_of_workers.size();
}

uint64_t ExternalBatchesPerEpoch(const v1::TrainingJob& job) {
  return CeilOf(job.data().examples(), job.data().batch_size());
}

uint64_t ExternalStepsPerEpoch(const v1::TrainingJob& job) {
  return CeilOf(ExternalBatchesPerEpoch(job), job.workers().count());
}

StartPoint GoOnFrom(const v1::JobLength& was, uint64_t clock, const v1::TrainingJob& job,
                    uint64_t steps_per_epoch) {
  const uint64_t now = KeptSteps(steps_per_epoch);
  uint64_t step = FirstStep(was, clock);
  // The last clock of each worker may have had fewer steps.
  const bool cut_short = was.total_clocks() == 0 && step > was.steps();
  if (cut_short) step = was.steps();
  const bool same =
      was.steps_per_epoch() == now && was.steps_per_clock() == StepsPerClock(job) && !cut_short;
  if (same) return {was.first_clock(), was.first_step()};
  const uint64_t before = std::max<uint64_t>(was.steps_per_epoch(), 1);
  // Whole epochs are converted separately, so that they stay whole and the product stays small.
  const double part = static_cast<double>(step % before) / static_cast<double>(before);
  const auto steps = static_cast<uint64_t>(std::llround(part * static_cast<double>(now)));
  return {clock, std::min(Product(step / before, now) + steps, kStepsMax)};
}

bool IsRenumbered(const v1::JobLength& was, const v1::JobLength& is) {
  return was.steps_per_epoch() != is.steps_per_epoch() ||
         was.steps_per_clock() != is.steps_per_clock() || was.first_clock() != is.first_clock() ||
         was.first_step() != is.first_step();
}

v1::JobLength ComputeLength(const v1::TrainingJob& job, uint64_t steps_per_epoch,
                            StartPoint start) {
  v1::JobLength length;
  length.set_steps_per_epoch(KeptSteps(steps_per_epoch));
  length.set_steps_per_clock(StepsPerClock(job));
  length.set_first_clock(start.clock);
  length.set_first_step(start.step);
  length.set_ends_by_clocks(job.stop().has_clocks());
  length.set_steps(StepsUntil(job.stop(), length));
  length.set_clocks(ClocksUntil(length.steps(), length));
  if (job.consistency().mode() == v1::CONSISTENCY_MODE_ASYNC) {
    const uint64_t workers = std::max<uint32_t>(1, job.workers().count());
    length.set_total_clocks(Product(length.clocks(), workers));
  }
  return length;
}

std::optional<uint64_t> JobBatches(const v1::TrainingJob& job, const v1::JobLength& length,
                                   uint64_t batches_per_epoch) {
  if (length.total_clocks() == 0) return std::nullopt;
  if (job.stop().has_clocks()) {
    const uint64_t workers = std::max<uint32_t>(1, job.workers().count());
    if (length.steps() > kBatchesMax / workers) return kBatchesMax;
    return length.steps() * workers;
  }
  const double batches = job.stop().epochs() * static_cast<double>(batches_per_epoch);
  if (!(batches < static_cast<double>(kBatchesMax))) return kBatchesMax;
  const auto whole = static_cast<uint64_t>(std::max(batches, 0.0));
  return whole + (static_cast<double>(whole) < batches ? 1 : 0);
}

uint64_t LargestClock(const v1::JobLength& length, uint32_t workers) {
  if (length.total_clocks() == 0) return length.clocks();
  // One worker may make all clocks. Each life of a worker may make one more, which was in progress
  // when the last clock counted.
  return Product(length.total_clocks(), 2) + workers;
}

uint64_t IntervalClocks(const v1::Interval& interval, const v1::JobLength& length) {
  if (interval.has_clocks()) return std::clamp<uint64_t>(interval.clocks(), 1, kStepsMax);
  const double steps = interval.epochs() * static_cast<double>(length.steps_per_epoch());
  const double clocks = std::round(steps / static_cast<double>(length.steps_per_clock()));
  if (!(clocks < static_cast<double>(kStepsMax))) return kStepsMax;
  return std::max<uint64_t>(1, static_cast<uint64_t>(std::max(clocks, 0.0)));
}

absl::Status CheckStopAhead(const v1::Interval& was, const v1::TrainingJob& job,
                            const v1::JobLength& length, uint64_t clock) {
  const bool same = was.has_clocks() == job.stop().has_clocks() &&
                    was.clocks() == job.stop().clocks() && was.epochs() == job.stop().epochs();
  if (same || clock <= length.clocks()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "stop: the job would stop at clock ", length.clocks(), ", but the run is already at clock ",
      clock, ". Set a later stop, or begin a new run in another --run-dir"));
}

bool IsSpread(const v1::Exchange& exchange) {
  return exchange.delta().spread() || exchange.elastic().spread();
}

bool KeepsWorkerState(const v1::TrainingJob& job) {
  if (job.exchange().has_elastic() || KeepsResidual(job.compression())) return true;
  if (IsSpread(job.exchange())) return true;
  if (!job.exchange().has_delta()) return false;
  // Each worker's weights are its own. In async mode a new life goes on from the mean.
  if (IsGossip(job) && job.consistency().mode() == v1::CONSISTENCY_MODE_SYNC) return true;
  // The program's own optimizer is not known here, so it may have state.
  if (IsExternal(job)) return true;
  return HasSlots(job.exchange().delta().optimizer()) || ScalesLoss(job);
}

}  // namespace leeway
