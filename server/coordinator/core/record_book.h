// What this coordinator's durable records say: until something is on record nobody is told of it,
// for a coordinator started again would not know it, and might say something else. Owns these
// facts, the incarnations set aside and the loss scales; must be told of each record that is
// durable.
#pragma once

#include <cstdint>
#include <utility>

#include "leeway/v1/checkpoint.pb.h"
#include "server/coordinator/core/loss_scales.h"

namespace leeway {

// Pure; not thread-safe.
class RecordBook {
 public:
  // A record is ahead by so many incarnations, so that few lives have to wait for the disk.
  static constexpr uint64_t kIncarnationsAhead = 1000;

  explicit RecordBook(uint64_t incarnation_base, LossScales loss_scales = {})
      : incarnations_(incarnation_base + kIncarnationsAhead),
        loss_scales_(std::move(loss_scales)) {}

  // No incarnation above it is given out, as the next record is to say.
  uint64_t incarnations() const { return incarnations_; }
  // True: the incarnation is beyond what was set aside, and more are now.
  bool Reserve(uint64_t incarnation);

  LossScales& loss_scales() { return loss_scales_; }
  const LossScales& loss_scales() const { return loss_scales_; }

  void Written(const v1::CoordinatorRecord& record);
  // The record of the job's end was written, or never will be. True: for the first time.
  bool Seal() { return !std::exchange(sealed_, true); }

  // This generation and this epoch of the placement are on record.
  bool Has(uint64_t generation, uint64_t epoch) const {
    return newest_ >= std::pair(generation, epoch);
  }
  // No coordinator after this one gives the incarnation out again.
  bool HasIncarnation(uint64_t incarnation) const { return incarnation <= durable_incarnations_; }
  bool begun() const { return begun_; }
  // That the programs keep state.
  bool programs_keep_state() const { return programs_keep_state_; }
  bool sealed() const { return sealed_; }

 private:
  uint64_t incarnations_;
  uint64_t durable_incarnations_ = 0;
  // That the job has begun.
  bool begun_ = false;
  bool programs_keep_state_ = false;
  // Generation and epoch.
  std::pair<uint64_t, uint64_t> newest_;
  bool sealed_ = false;
  LossScales loss_scales_;
};

}  // namespace leeway
