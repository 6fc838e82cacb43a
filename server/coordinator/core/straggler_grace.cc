#include "server/coordinator/core/straggler_grace.h"

#include <algorithm>
#include <utility>

namespace leeway {
namespace {

// The shortest wait is this fraction of a clock's usual time. Such a wait costs next to nothing,
// however steady the workers are.
constexpr int kShortestShare = 20;

}  // namespace

Time StragglerGrace::Until(Time now, size_t came) {
  if (!until_) {
    before_ = came;
    until_ = now + After(now);
  }
  return *until_;
}

Duration StragglerGrace::After(Time enough) const {
  if (rules_.deviations <= 0) return Duration::zero();
  const std::optional<ArrivalHistory::Usual> usual = history_.Get();
  if (!usual || !began_) return rules_.limit;
  const auto deviation = static_cast<double>(usual->deviation.count());
  const double late = static_cast<double>(usual->median.count()) + rules_.deviations * deviation;
  // Computed in floating point until it is bounded, because `deviations` times a long time may
  // overflow.
  const double left = late - static_cast<double>((enough - *began_).count());
  const double shortest = static_cast<double>(usual->median.count()) / kShortestShare;
  const double limit = static_cast<double>(rules_.limit.count());
  const double wait = InVain() ? shortest : std::max(left, shortest);
  return Duration(static_cast<Duration::rep>(std::min(wait, limit)));
}

void StragglerGrace::NextClock(Time now, size_t came, const std::vector<Time>& arrivals) {
  vain_ = !until_ || came > before_ ? 0 : vain_ + 1;
  if (began_) {
    std::vector<Duration> delays;
    // A contribution that came before the clock began is from a worker that had not been told of
    // new weights yet. Its delay counts as zero.
    for (const Time at : arrivals) delays.push_back(std::max(at - *began_, Duration::zero()));
    history_.Add(std::move(delays));
  }
  began_ = now;
  until_.reset();
}

void StragglerGrace::Restart() {
  began_.reset();
  until_.reset();
}

}  // namespace leeway
