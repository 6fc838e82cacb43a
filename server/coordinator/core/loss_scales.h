// The loss scales that ranks of an fp16 job have reported (common/loss_scale.h). Owns these; must
// be told of each record that is durable, for a worker goes on when its report is on record.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/loss_scale.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/coordinator_options.h"

namespace leeway {

// Pure; not thread-safe.
class LossScales {
 public:
  // Of a job whose workers report none.
  LossScales() = default;
  // With what the run's record says so far, as far as it can be true.
  explicit LossScales(const CoordinatorOptions& options);

  // INVALID_ARGUMENT: the job's workers have none to report, or not these.
  absl::Status Check(const v1::HeartbeatRequest& request, uint64_t largest_clock) const;
  // Of a request that Check lets through. True: there is news, which is to be recorded.
  bool Take(const v1::HeartbeatRequest& request);
  void Written(const v1::CoordinatorRecord& record);
  // All that the rank has reported is.
  bool OnRecord(uint32_t rank) const;

  void Fill(uint32_t rank, v1::RegisterWorkerReply& reply) const;
  void Fill(v1::CoordinatorRecord& record) const;

 private:
  // By rank; none where the job's workers report none.
  std::vector<LossScaleHistory> reported_;
  std::vector<LossScaleHistory> durable_;
};

}  // namespace leeway
