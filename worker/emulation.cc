#include "worker/emulation.h"

#include <algorithm>

#include "common/philox.h"

namespace leeway {
namespace {

bool Concerns(const v1::Slowdown& slowdown, uint32_t rank) {
  return slowdown.ranks().empty() || std::find(slowdown.ranks().begin(), slowdown.ranks().end(),
                                               rank) != slowdown.ranks().end();
}

}  // namespace

Emulation::Emulation(const v1::TrainingJob& job, uint32_t rank)
    : emulate_(job.workers().emulate()), seed_(job.metadata().seed()), rank_(rank) {}

double Emulation::FactorAt(uint64_t step) const {
  RandomStream draws(seed_, RandomPurpose::kEmulate, {step, rank_});
  double factor = 1;
  for (const v1::Slowdown& slowdown : emulate_.slow()) {
    // Every slowdown makes a draw, so that one slowdown does not change the draws of another.
    const bool hits = draws.Uniform() < slowdown.probability();
    if (hits && Concerns(slowdown, rank_)) factor *= slowdown.factor();
  }
  return factor;
}

Duration Emulation::Pause(uint64_t step, Duration measured) const {
  const double least = emulate_.step_milliseconds() / 1000;
  const double wanted = FactorAt(step) * std::max(least, Seconds(measured));
  return std::max(Duration::zero(), FromSeconds(wanted) - measured);
}

}  // namespace leeway
