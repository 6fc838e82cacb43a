// Holds the contents of this coordinator's durable records (coordinator.json). A fact is on record
// once it is in a durable record. It goes on record before any process is told of it. Otherwise a
// restarted coordinator would not know the fact and might decide differently. Owns these facts, the
// reserved incarnations and the loss scales. The core must report each durable record here.
#pragma once

#include <cstdint>
#include <utility>

#include "leeway/v1/checkpoint.pb.h"
#include "server/coordinator/core/loss_scales.h"

namespace leeway {

// Pure; not thread-safe.
class RecordBook {
 public:
  // The number of incarnations that one record reserves in advance, so that new lives seldom wait
  // for the disk.
  static constexpr uint64_t kIncarnationsAhead = 1000;

  explicit RecordBook(uint64_t incarnation_base, LossScales loss_scales = {})
      : incarnations_(incarnation_base + kIncarnationsAhead),
        loss_scales_(std::move(loss_scales)) {}

  // Returns the highest reserved incarnation, which goes into the next record.
  uint64_t incarnations() const { return incarnations_; }
  // Makes sure that the incarnation is reserved. Returns true if this needed a new reservation,
  // which the caller must put on record.
  bool Reserve(uint64_t incarnation);

  LossScales& loss_scales() { return loss_scales_; }
  const LossScales& loss_scales() const { return loss_scales_; }

  void Written(const v1::CoordinatorRecord& record);
  // Notes that the record of the job's end was written, or never will be. Returns true at the first
  // call.
  bool Seal() { return !std::exchange(sealed_, true); }

  // Returns true if this generation and this epoch of the placement are on record.
  bool Has(uint64_t generation, uint64_t epoch) const {
    return newest_ >= std::pair(generation, epoch);
  }
  // Returns true if no later coordinator can assign this incarnation again.
  bool HasIncarnation(uint64_t incarnation) const { return incarnation <= durable_incarnations_; }
  bool begun() const { return begun_; }
  // Returns true if the record says that the programs keep state.
  bool programs_keep_state() const { return programs_keep_state_; }
  bool sealed() const { return sealed_; }

 private:
  uint64_t incarnations_;
  uint64_t durable_incarnations_ = 0;
  // True if the record says that the job has begun.
  bool begun_ = false;
  bool programs_keep_state_ = false;
  // The generation and the placement's epoch in the newest durable record.
  std::pair<uint64_t, uint64_t> newest_;
  bool sealed_ = false;
  LossScales loss_scales_;
};

}  // namespace leeway
