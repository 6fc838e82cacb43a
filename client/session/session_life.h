// One life of a worker in its job, from the coordinator's answer to its registration.
#pragma once

#include <chrono>
#include <cstdint>

#include "client/core/retry_core.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

struct SessionLife {
  uint64_t job = 0;
  uint32_t rank = 0;
  uint64_t incarnation = 0;
  uint64_t generation = 0;
  // The longest time for which the worker may have waited when it registered: limits.start_seconds.
  Duration start_limit{};
  // limits.exchange_seconds.
  Duration exchange_limit{};
  // True if a clock may be complete without a worker that is lost.
  bool goes_on_without_lost = false;

  // Returns the life that `reply` describes. `limit` is the time limit of the registration.
  static SessionLife Of(const v1::RegisterWorkerReply& reply, Duration limit) {
    return {
        .job = reply.job_id(),
        .rank = reply.rank(),
        .incarnation = reply.incarnation(),
        .generation = reply.generation(),
        .start_limit = limit,
        .exchange_limit = FromSeconds(reply.job().limits().exchange_seconds()),
        .goes_on_without_lost = reply.job().consistency().mode() != v1::CONSISTENCY_MODE_SYNC ||
                                reply.job().workers().on_worker_loss() == v1::WORKER_LOSS_CONTINUE};
  }

  // Writes this life to a request, as the request's sender.
  template <typename Request>
  void Sign(Request& request) const {
    request.set_job(job);
    request.set_rank(rank);
    request.set_incarnation(incarnation);
    request.set_generation(generation);
  }

  // Returns the limits of the calls that a worker makes while it trains. They are long enough for a
  // coordinator that is being restarted.
  RetryLimits Patience() const {
    constexpr Duration kPatienceMin = std::chrono::seconds(60);
    return start_limit >= kPatienceMin ? Within(start_limit, "limits.start_seconds")
                                       : Within(kPatienceMin, "the shortest limit");
  }
};

}  // namespace leeway
