// The clocks of a gossip job at whose end the worker's part goes into the mean of all weights
// (topology.mean_every): every mean_every clocks, at each cut, and at the end of the job. A job
// that is stopped stops before a clock that is a multiple of mean_every.
#pragma once

#include <cstdint>

#include "config/topology.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

class MeanClocks {
 public:
  explicit MeanClocks(const v1::RegisterWorkerReply& registration)
      : every_(MeanEvery(registration.job())),
        cut_every_(registration.cut_every()),
        clocks_(registration.length().clocks()),
        total_clocks_(registration.length().total_clocks()),
        in_flight_(uint64_t{2} * registration.job().workers().count()) {}

  // Returns true if a job may stop before this clock. In sync mode the exchange of such a clock is
  // not complete before all workers have made the clock. Otherwise a worker that does not know of
  // the stop yet could complete it with its neighbours.
  bool MayStopBefore(uint64_t clock) const { return clock % every_ == 0; }
  // `version` is the number of updates of the mean that the worker knows of.
  bool IsMean(uint64_t clock, uint64_t version) const {
    const uint64_t made = clock + 1;
    if (made % every_ == 0 || (cut_every_ > 0 && made % cut_every_ == 0)) return true;
    // In async mode all workers together make the last clock, so none knows which one it is. Each
    // worker may have made some more clocks since the version.
    if (total_clocks_ > 0) return version + in_flight_ * every_ >= total_clocks_;
    return made >= clocks_;
  }

 private:
  const uint64_t every_, cut_every_, clocks_, total_clocks_, in_flight_;
};

}  // namespace leeway
