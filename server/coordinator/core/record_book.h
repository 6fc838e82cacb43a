// What this coordinator's durable records say. A fact is told to nobody until it is on record,
// because a restarted coordinator would not know it, and might say something else. Owns these
// facts, the reserved incarnations and the loss scales. The core must tell it of each durable
// record.
#pragma once

#include <cstdint>
#include <utility>

#include "leeway/v1/checkpoint.pb.h"
#include "server/coordinator/core/loss_scales.h"

namespace leeway {

// Pure; not thread-safe.
class RecordBook {
 public:
  // The number of incarnations that a record reserves ahead, so that few lives wait for the disk.
  static constexpr uint64_t kIncarnationsAhead = 1000;

  explicit RecordBook(uint64_t incarnation_base, LossScales loss_scales = {})
      : incarnations_(incarnation_base + kIncarnationsAhead),
        loss_scales_(std::move(loss_scales)) {}

  // The highest reserved incarnation, as the next record will say.
  uint64_t incarnations() const { return incarnations_; }
  // Returns true if the incarnation was beyond the reserved ones; more are reserved now.
  bool Reserve(uint64_t incarnation);

  LossScales& loss_scales() { return loss_scales_; }
  const LossScales& loss_scales() const { return loss_scales_; }

  void Written(const v1::CoordinatorRecord& record);
  // The record of the job's end was written, or never will be. Returns true the first time.
  bool Seal() { return !std::exchange(sealed_, true); }

  // Whether this generation and this epoch of the placement are on record.
  bool Has(uint64_t generation, uint64_t epoch) const {
    return newest_ >= std::pair(generation, epoch);
  }
  // True if no later coordinator can give this incarnation out again.
  bool HasIncarnation(uint64_t incarnation) const { return incarnation <= durable_incarnations_; }
  bool begun() const { return begun_; }
  // Whether the record says that the programs keep state.
  bool programs_keep_state() const { return programs_keep_state_; }
  bool sealed() const { return sealed_; }

 private:
  uint64_t incarnations_;
  uint64_t durable_incarnations_ = 0;
  // True if the record says that the job has begun.
  bool begun_ = false;
  bool programs_keep_state_ = false;
  // The generation and the epoch.
  std::pair<uint64_t, uint64_t> newest_;
  bool sealed_ = false;
  LossScales loss_scales_;
};

}  // namespace leeway
