// Owns the loss scales that the ranks of an fp16 job have reported (common/loss_scale.h). The core
// must report each durable record here, because a worker continues only when its report is on
// record.
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
  // Makes an object for a job whose workers report no loss scales.
  LossScales() = default;
  // Begins with the valid entries of the run's record.
  explicit LossScales(const CoordinatorOptions& options);

  // Returns INVALID_ARGUMENT if the job's workers report no loss scales, or if the reported loss
  // scales are not valid.
  absl::Status Check(const v1::HeartbeatRequest& request, uint64_t largest_clock) const;
  // Takes a request that Check has accepted. Returns true if the request reports something new,
  // which must be recorded.
  bool Take(const v1::HeartbeatRequest& request);
  void Written(const v1::CoordinatorRecord& record);
  // Returns true if all that the rank has reported is on record.
  bool OnRecord(uint32_t rank) const;

  void Fill(uint32_t rank, v1::RegisterWorkerReply& reply) const;
  void Fill(v1::CoordinatorRecord& record) const;

 private:
  // The reported scales, by rank; empty if the job's workers report no loss scales.
  std::vector<LossScaleHistory> reported_;
  std::vector<LossScaleHistory> durable_;
};

}  // namespace leeway
